from ragistry.utils.wording import did_you_mean, listed


def test_a_close_name_is_suggested():
    assert did_you_mean("nave", ["bm25", "naive"]) == "; did you mean 'naive'?"


def test_case_does_not_count_and_the_known_spelling_is_given():
    assert did_you_mean("HYDE", ["HyDE", "bm25"]) == "; did you mean 'HyDE'?"


def test_nothing_is_suggested_where_nothing_is_close():
    assert did_you_mean("zzz", ["bm25", "naive"]) == ""
    assert did_you_mean("naive", []) == ""


def test_a_key_that_is_no_text_is_taken_as_it_is_written():
    assert did_you_mean(25, ["bm25"]) == "; did you mean 'bm25'?"


def test_names_are_listed_in_order_and_the_rest_is_counted():
    assert listed({"naive", "bm25"}) == "'bm25', 'naive'"
    assert listed(["d", "c", "b", "a"], limit=2) == "'a', 'b' and 2 more"
    assert listed([]) == "none"
