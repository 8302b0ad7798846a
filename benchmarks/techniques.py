"""Does it help? Each technique against `naive`, `bm25` and `hybrid`: ``python -m benchmarks.techniques [--quick]``.

Every entry of the default techniques.yaml that needs no language model is compared, one chunk a document. What is
printed goes into benchmarks/RESULTS.md, too, between the marks there; of the short form only with ``--write``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks.quality import CACHE, DATA, LANGUAGES, paired_p, read, shown
from ragistry import open_workspace
from ragistry.errors import ConfigError
from ragistry.evaluation import Comparison, compare
from ragistry.evaluation.figures import ALPHA
from ragistry.evaluation.statistics import holm
from ragistry.techniques.classes import wanted_resources

PAGE = Path(__file__).resolve().parents[1] / "benchmarks" / "RESULTS.md"
BEGIN, END = "<!-- measured: techniques -->\n", "<!-- end -->"
SETS = (
    "scifact", "cranfield", "hotpotqa-pooled500", "claude-docs", "hugo-known-item", "xquad-en", "xquad-de",
    "limit-small",
)  # fmt: skip
QUICK = ("claude-docs", "limit-small")
BASELINES = ("naive", "bm25", "hybrid")
MAIN = "nDCG@10"
MODELS = "rerankers:\n  maxsim: {use: maxsim, memory: 4000}\n"
"""The token vectors of a whole set fit, so that each text is computed once, as with ``keep_token_vectors: true``."""
WHEN = {
    "naive": "Use it for questions in other words than the texts, in a language of the embedding model; not for codes, "
    "rare names or other languages.",
    "bm25": "Use it for codes, names and error messages, in any language, at the least cost; not where questions use "
    "other words than the texts.",
    "hybrid": "Use it where you do not know what will be asked; not where one of its parts alone "
    "does as well and milliseconds count.",
    "newest": "Use it where versions of one text are stored and have dates; not for records of one form, which it "
    "takes for versions, and not to rank better: without versions it returns what its base returns.",
    "parent_document": "Use it where chunks are smaller than what a reader needs; not where every token returned is "
    "paid for. It returns more text, not other sources, so these sets cannot show what it is for.",
    "rerank": "Use it where the last percent matters and token vectors are kept, or with a cross-encoder at a server; "
    "not where milliseconds count.",
    "graph": "Use it for questions that join facts of several sources; not where one passage answers.",
    "learned_sparse": "Use it where words should count by what they mean and no vectors are kept; not where `hybrid` "
    "can be used.",
}
"""When to use a technique and when not, by its name in techniques.yaml."""


Tested = dict[tuple[str, str], tuple[float, float]]
"""Two techniques → the difference of their means on one set, and its p-value corrected over all of these pairs."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"only {', '.join(QUICK)}; nothing is written")
    parser.add_argument("--write", action="store_true", help="write what --quick measures, too")
    parser.add_argument("--cache", type=Path, default=CACHE, help=f"where vectors are kept [{CACHE}]")
    options = parser.parse_args()
    names, left_out = measurable()
    results: dict[str, Comparison] = {}
    for name in QUICK if options.quick else SETS:
        if not (DATA / name).is_dir():
            print(f"skipped: {name} is not in {DATA}", file=sys.stderr)
            continue
        results[name] = measured(name, names, options.cache)
        print(f"{name}: done", file=sys.stderr)
    text = evidence(results, names, left_out)
    print(text)
    if results and (options.write or not options.quick):
        write(text)
    failures = {f"{technique} on {name}: {one.error}" for name, result in results.items()
                for technique, one in result.failures.items()}  # fmt: skip
    if failures or not results:
        sys.exit("; ".join(sorted(failures)) or f"there is no test set in {DATA}")


def measurable() -> tuple[list[str], dict[str, str]]:
    """The techniques of the default techniques.yaml that can be compared, and why each of the others cannot."""
    names, left_out = [], {}
    with tempfile.TemporaryDirectory() as root, open_workspace(root) as opened:
        for name in opened.registry.names():
            if "targets" in wanted_resources(opened.registry.technique_class(name)):
                left_out[name] = "chooses between collections, and each of these sets is one"
                continue
            try:
                opened.registry.get(name)
                names.append(name)
            except ConfigError:
                left_out[name] = "needs a model that has to be configured first"
    return names, left_out


def measured(name: str, techniques: list[str], cache: Path) -> Comparison:
    """All techniques on one set, its words analysed by their language."""
    dataset, language = read(DATA / name, titles=True), LANGUAGES.get(name, "english")
    with tempfile.TemporaryDirectory() as root:
        (Path(root) / "config").mkdir()
        (Path(root) / "config" / "models.yaml").write_text(MODELS, encoding="utf-8")
        with open_workspace(root, language=language) as opened:
            return compare(techniques, dataset, [MAIN], workspace=opened, cache=cache, progress=shown)


def tested(result: Comparison) -> Tested:
    """Every other technique against each baseline, and the baselines among each other."""
    rows = {name: list(one.per_query[MAIN].values()) for name, one in result.techniques.items() if one.same_as is None}
    pairs = [(a, b) for b in BASELINES if b in rows for a in rows if a not in BASELINES[: BASELINES.index(b) + 1]]
    corrected = holm([paired_p(rows[a], rows[b]) for a, b in pairs])
    means = {name: result.techniques[name].measures[MAIN].mean for name in rows}
    return {(a, b): (means[a] - means[b], p) for (a, b), p in zip(pairs, corrected, strict=True)}


def lead(pairs: Tested, name: str, other: str) -> tuple[float, float] | None:
    """How far a technique is above another, and p; None where both are one, or rank alike."""
    if (name, other) in pairs:
        return pairs[name, other]
    if (other, name) in pairs:
        difference, p = pairs[other, name]
        return -difference, p
    return None


def evidence(results: Mapping[str, Comparison], names: list[str], left_out: Mapping[str, str]) -> str:
    """The part of the page: when to use what, all sets at a glance, and a table for each set."""
    parts = ["\n".join(f"- `{name}`: {WHEN[name]}" for name in names if name in WHEN)]
    for reason in dict.fromkeys(left_out.values()):
        those = ", ".join(f"`{name}`" for name, why in left_out.items() if why == reason)
        parts.append(f"Not measured, because each {reason}: {those}.")
    parts.append("CPU (median), calls and tokens returned are those of a search for five results.")
    parts.append("`rerank` computed the token vectors of each text once in a run, which its CPU time holds.")
    parts.append(f"{MAIN} on every set; bold: significantly better than `hybrid`, in italics: significantly worse.")
    parts.append(overview(results, names))
    parts += [f"### {name}\n\n{table(result)}" for name, result in results.items()]
    return "\n\n".join(parts)


def overview(results: Mapping[str, Comparison], names: list[str]) -> str:
    """A row for each technique, a column for each set."""
    pairs = {name: tested(result) for name, result in results.items()}
    rows = [["technique", *results], ["---", *["--:"] * len(results)]]
    for name in names:
        cells = []
        for of_set, result in results.items():
            if name not in result.techniques:
                cells.append("failed")
                continue
            one = result.techniques[name]
            mean, ahead = f"{one.measures[MAIN].mean:.3f}", lead(pairs[of_set], one.same_as or name, "hybrid")
            if ahead is None or ahead[1] >= ALPHA:
                cells.append(mean)
            else:
                cells.append(f"**{mean}**" if ahead[0] > 0 else f"*{mean}*")
        rows.append([f"`{name}`", *cells])
    return markdown(rows)


def table(result: Comparison) -> str:
    """A row for each technique of one set: quality, differences to the baselines, and cost of a query."""
    pairs = tested(result)
    against = [f"over `{name}`" for name in BASELINES]
    rows = [["technique", f"{MAIN} [95 %]", *against, "CPU ms", "calls", "tokens returned"], ["---", *["--:"] * 7]]
    for name in result.by_quality:
        one = result.techniques[name]
        quality = one.measures[MAIN]
        differences = [said(lead(pairs, name, other)) for other in BASELINES]
        if one.same_as is not None:
            differences = [f"same rankings as `{one.same_as}`", "", ""]
        cost = [f"{one.cpu_ms.p50:.1f}", f"{one.calls / result.queries:.1f}", f"{one.returned_tokens:,.0f}"]
        rows.append([f"`{name}`", f"{quality.mean:.3f} [{quality.low:.3f}, {quality.high:.3f}]", *differences, *cost])
    size = f"{result.queries:,} queries over {result.provenance['dataset']['documents']:,} documents"
    return (
        f"{size}. p: paired randomisation, Holm over {len(pairs)} pairs. Costs: a search for five.\n\n{markdown(rows)}"
    )


def said(ahead: tuple[float, float] | None) -> str:
    """A difference with its p-value; bold where it is significant."""
    if ahead is None:
        return ""
    difference, p = ahead
    text = f"{difference:+.3f}, p {'< 0.001' if p < 0.001 else f'= {p:.3f}'}"
    return f"**{text}**" if p < ALPHA else text


def markdown(rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def write(text: str, begin: str = BEGIN) -> None:
    """Replace what stands between the marks of the page."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(begin)
    _, end, after = rest.partition(END)
    if not end:
        sys.exit(f"{PAGE} has no {begin.strip()!r} with {END!r} after it")
    PAGE.write_text(f"{before}{begin}\n{text}\n\n{end}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
