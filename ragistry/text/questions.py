"""Words that ask and say nothing of the subject, by language: interrogatives, pronouns and auxiliary verbs."""

# ruff: noqa: RUF001 - letters of many languages

from __future__ import annotations

from functools import cache

_WORDS = {
    "english": (
        "who whom whose what when where which why how do does did am is are was were been being can could should "
        "would shall may might must have has had i me my mine we us our you your he him his she her it its they "
        "them anyone anybody anything someone somebody something there here please tell show"
    ),
    "german": (
        "wer wen wem wessen was wann wo woher wohin womit wozu wofür wodurch wobei woran worauf woraus worin "
        "worüber wovon warum wieso weshalb wie wieviel wieviele welche welcher welches welchen welchem bin bist "
        "ist sind war waren hat habe haben hatte hatten kann können konnte soll sollte muss müssen darf wird "
        "werden wurde wurden heißt ich mir mich mein meine wir uns unser du dir dich dein sie ihr man jemand etwas "
        "bitte gibt"
    ),
    "french": (
        "qui que quoi quand où comment pourquoi combien quel quelle quels quelles lequel laquelle est sont était "
        "étaient suis a ont avait peut peuvent doit doivent fait faire je me mon ma mes nous notre vous votre tu "
        "il elle ils elles quelqu'un qu"
    ),
    "spanish": (
        "quién quiénes qué cuándo dónde cómo cuál cuáles cuánto cuánta cuántos cuántas por es son era eran fue ha "
        "han había puede pueden debe hace hacer yo me mi nosotros nuestro usted ustedes tú él ella alguien algo "
        "hay"
    ),
    "italian": (
        "chi che cosa quando dove come perché quale quali quanto quanta quanti quante è sono era ha hanno può deve "
        "io mi mio noi nostro voi tu lui lei loro qualcuno c'è"
    ),
    "portuguese": (
        "quem que quê quando onde como qual quais quanto quanta quantos quantas é são era foi tem têm pode deve eu "
        "me meu minha nós nosso você vocês ele ela alguém há"
    ),
    "dutch": (
        "wie wat wanneer waar waarom waarmee waarvoor hoe hoeveel welk welke is zijn was waren heeft hebben had "
        "kan kunnen moet mag wordt worden werd ik mij mijn wij we ons onze jij je u uw hij zij iemand iets"
    ),
    "swedish": (
        "vem vems vad när var vart varför hur vilken vilket vilka är har hade kan kunde ska måste jag vi du ni"
    ),
    "danish": (
        "hvem hvis hvad hvornår hvor hvorfor hvordan hvilken hvilket hvilke er var har havde kan skal jeg vi du"
    ),
    "norwegian": "hvem hva når hvor hvorfor hvordan hvilken hvilket hvilke er var har hadde kan skal jeg vi du",
    "russian": (
        "кто кого кому кем ком что чего чему чем когда где куда откуда почему зачем как какой какая какое какие "
        "каких каким какую каком который которая сколько чей чья есть был была было были можно может мне мой я мы "
        "нас вы вас он она они"
    ),
    "arabic": "من ما ماذا متى أين كيف لماذا لم كم أي أية هل بماذا مما عم فيم هو هي كان كانت",
    "turkish": (
        "kim kimin kime ne neyi neden niçin nasıl nerede nereye nereden hangi hangisi kaç mi mı mu mü var ben biz"
    ),
}  # fmt: skip


@cache
def asking_words(*languages: str) -> frozenset[str]:
    """Return these words of some languages in small letters; a language may have none."""
    return frozenset(" ".join(_WORDS.get(language, "") for language in languages).split())
