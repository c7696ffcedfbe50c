"""Usual names of columns, in lower case without spaces and punctuation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from string import digits

_WORDS = {
    "item": (
        "id item itemid segment segmentid segid seg promptid questionid qid exampleid sampleid inputid contextid docid "
        "documentid instanceid uid idx index key taskid dialogueid dialogid conversationid inputkey inputitem example "
        "sample nr no number rownumber lfdnr nummer beispiel beispielid frageid numéro identifiant "
        "identificador número 番号 編號 编号"
    ),
    "context": (
        "context prompt instruction question query dialogue dialog history conversation messages post userprompt "
        "promptname inputtext chathistory precedingturns utterance frage aufgabe eingabe anfrage kontext anweisung "
        "usermessage userutterance userquery userquestion userturn message customermessage request pregunta "
        "entrada consigne instrucción pergunta 質問 問題 问题 プロンプト"
    ),
    "source": (
        "source src input sourcetext article document sourcesentence original mr meaningrepresentation passage quelle "
        "quelltext ausgangstext originaltext artikel dokument texteoriginal fuente "
        "textooriginal 原文"
    ),
    "references": (
        "reference references ref refs gold goldanswer goldreference groundtruth target humanreference expected "
        "expectedoutput referencetext referenceanswer postedit goldstandard correctanswer idealanswer referenz "
        "musterlösung musterantwort referenzantwort référence referencia 参照 參考"
    ),
    "group": "group groupid cluster thread gruppe",
    "system": (
        "system systemid systemname model modelid modelname generator bot engine agent llm mtsystem modell modèle "
        "système modelo sistema モデル 模型 系统"
    ),
    "text": (
        "text output response answer generation completion hypothesis hyp prediction candidate modeloutput mt summary "
        "translation modelresponse generatedtext generated reply systemoutput modelanswer outputtext responsetext "
        "antwort ausgabe übersetzung zusammenfassung modellantwort réponse respuesta sortie salida "
        "traduction traducción resumen résumé resposta 回答 応答 译文 訳文 回复"
    ),
    "step": "step checkpoint trainingstep globalstep",
    "rater": (
        "rater raterid annotator annotatorid annotatorname worker workerid judge judgeid user userid username email "
        "emailaddress participant participantid completedby evaluatorid coder reviewer prolificid prolificpid "
        "ratername annotatorin bewerter bewerterin gutachter gutachterin teilnehmer teilnehmerin évaluateur annotateur "
        "evaluador anotador avaliador 評価者 评估者 標注者 标注者"
    ),
    "aspect": "aspect criterion criteria dimension attribute quality qualityaspect metric aspectname kriterium aspekt",
    "value": (
        "score scores rating ratings value grade humanscore humanrating judgment judgement likert stars rate mqm da "
        "points mark bewertung note schulnote gesamtnote punkte wertung puntuación puntaje notación 評価 评分 点数"
    ),
    "system_a": (
        "systema modela model1 system1 generator1 sysa leftmodel leftsystem modelleft systemleft modella chosenmodel "
        "chosensystem modelchosen systemchosen"
    ),
    "system_b": (
        "systemb modelb model2 system2 generator2 sysb rightmodel rightsystem modelright systemright modellb "
        "rejectedmodel rejectedsystem modelrejected systemrejected"
    ),
    "text_a": (
        "texta responsea outputa answera output1 response1 answer1 text1 conversationa leftresponse antworta antwort1"
    ),
    "text_b": (
        "textb responseb outputb answerb output2 response2 answer2 text2 conversationb rightresponse antwortb antwort2"
    ),
    "verdict": (
        "winner verdict preference preferred choice preferredoutput vote better decision humanpreference gewinner "
        "sieger präferenz besser best bestanswer bestmodel"
    ),
    "chosen": "chosen chosenresponse preferredresponse selected winningresponse accepted chosentext",
    "rejected": "rejected rejectedresponse dispreferred rejectedtext losingresponse",
}
#: Field -> its usual names, the most usual first.
NAMES = {name: words.split() for name, words in _WORDS.items()}
#: Words around the name of a system in the names of columns with outputs.
OUTPUT_WORDS = (*NAMES["text"], "outputs", "responses", "answers")
#: Numbers in columns with these names are ratings.
_ASPECTS = """
    fluency coherence consistency relevance naturalness informativeness engagingness engagement engaging
    understandable overall quality overallquality adequacy faithfulness factuality helpfulness harmlessness
    correctness grammar grammaticality appropriateness appropriate interestingness interesting specificity
    diversity humanness accuracy readability clarity safety honesty truthfulness verbosity complexity
    conciseness simplicity plausibility maintainscontext usesknowledge meaning style creativity empathy
    toxicity likability completeness usefulness coverage comprehensibility flüssigkeit kohärenz relevanz korrektheit
    fluidité cohérence pertinence adéquation exactitude qualité clarté fluidez coherencia pertinencia relevancia
    adecuación exactitud calidad claridad corrección fluência coerência 流暢さ 流畅度 流暢性 一貫性 连贯性 正確さ 准确性
    verständlichkeit qualität gesamt gesamteindruck nützlichkeit natürlichkeit grammatik richtigkeit vollständigkeit
    lesbarkeit
"""
ASPECTS = frozenset(_ASPECTS.split())
_REMARK_WORDS = """
    note notes comment comments remark remarks feedback explanation reason rationale justification description title
    name anmerkung anmerkungen kommentar kommentare begründung bemerkung anycomments
"""
#: Remarks on a row, which nobody judges.
REMARKS = frozenset(_REMARK_WORDS.split())
_TOTAL_WORDS = """
    total totals sum average avg mean median std sd stdev summe gesamt mittelwert durchschnitt insgesamt
"""
#: First cells of rows that sum up the others.
TOTALS = frozenset(_TOTAL_WORDS.split())
#: Usual answers from the lowest, which is 1; several words for the same one have a stroke between them.
_SCALES = (
    "strongly disagree|completely disagree,disagree|somewhat disagree,neutral|neither agree nor disagree|undecided,"
    "agree|somewhat agree,strongly agree|completely agree",
    "very poor|very bad|terrible,poor|bad,fair|average|ok|okay|acceptable,good,very good|excellent",
    "never,rarely,sometimes,often,always",
    "not at all,slightly|a little,moderately|somewhat,very,extremely",
    "very dissatisfied,dissatisfied,neutral,satisfied,very satisfied",
    "stimme gar nicht zu|stimme überhaupt nicht zu|trifft gar nicht zu,stimme nicht zu|stimme eher nicht zu|trifft "
    "eher nicht zu,teils teils|teils/teils|neutral|weder noch,stimme zu|stimme eher zu|trifft eher zu,stimme voll zu|"
    "stimme voll und ganz zu|trifft voll zu",
    "sehr schlecht,schlecht,mittel|mittelmäßig|okay,gut,sehr gut",
)
SCALES = [
    {word: number for number, words in enumerate(scale.split(","), 1) for word in words.split("|")} for scale in _SCALES
]
#: Texts in cells of ratings that say that there is none.
MISSING = frozenset(["na", "n/a", "nan", "null", "none", "-", "--", "?", "missing", "skip", "skipped", "#n/a"])
_PREFIX = re.compile(r"^(?:input|answer|data|record|value|inputs|fields|metadata)[._]", re.IGNORECASE)
_VERDICTS = {
    "a": "a modela left 1 first A>B A links gauche izquierda",
    "b": "b modelb right 2 second B>A B rechts droite derecha",
    "tie": "tie equal same draw both tied neutral 0 tie_a 1.5 A=B no_preference unentschieden gleich gleichstand "
    "égalité ex_aequo empate",
    "both_bad": "tie_(bothbad) tie(bothbad) both_bad bothbad neither both_are_bad tie_both_bad",
    "cannot_decide": "cannot_decide unsure unknown cant_tell cannot_tell",
}
VERDICT_WORDS = {word.casefold(): verdict for verdict, words in _VERDICTS.items() for word in words.split()}
#: Words before the letter or the number of an output.
_COMPARED_WORDS = """
    model system assistant response output answer text option candidate antwort modell réponse respuesta
"""
VERDICT_WORDS |= {
    f"{word}_{mark}": side
    for word in _COMPARED_WORDS.split()
    for mark, side in (("a", "a"), ("1", "a"), ("b", "b"), ("2", "b"))
}


_INPUT_WORDS = """
    gold reference ref target expected correct question prompt source context groundtruth frage referenz
"""
#: Names that also occur with a word for an output, as in `answer_gold` and `question text`.
_INPUTS = frozenset(_INPUT_WORDS.split())
#: What `sources.name_columns` adds to a name that occurs again.
_TWICE = re.compile(r" \(\d+\)\Z")
#: A scale after a name, as in `Fluency (1-5)` and `Rating 1-5`.
_SCALE = re.compile(r"[(\[](?:scale )?[-−]?\d[^()\[\]]{1,80}[)\]]\Z|(?<=\w)\s\d{1,3}\s?[-–]\s?\d{1,3}\Z")


def find_scale(labels: Iterable[str]) -> dict[str, int] | None:
    """The usual scale that has all labels; None if none has, or several disagree."""
    words = {label: " ".join(label.casefold().split()) for label in labels}
    found = [
        {label: scale[word] for label, word in words.items()}
        for scale in SCALES
        if all(word in scale for word in words.values())
    ]
    return found[0] if found and all(one == found[0] for one in found) else None


_LANGUAGE_CODES = """
    af am ar az be bg bn bs ca cs cy da de el en es et eu fa fi fr ga gl gu he hi hr hu hy id is it ja ka kk km kn
    ko lt lv mk ml mn mr ms my ne nl no pa pl ps pt ro ru si sk sl so sq sr sv sw ta te th tl tr uk ur uz vi xh yo
    zh zu ara ben ces cze deu dut ell eng fas fra fre ger heb hin ind ita jpn kor nld pol por rus spa swe tam tha
    tur ukr urd vie zho
"""
_LANGUAGE_NAMES = """
    arabic bengali chinese czech danish dutch english finnish french german greek hebrew hindi hungarian indonesian
    italian japanese korean norwegian persian polish portuguese romanian russian spanish swedish thai turkish
    ukrainian urdu vietnamese deutsch englisch französisch spanisch italienisch russisch chinesisch japanisch
    français anglais allemand espagnol español inglés alemán francés português italiano 中文 英文 英语 德语 法语
    日文 日语 日本語 英語 中国語 русский
"""
_LANGUAGES = frozenset((*_LANGUAGE_CODES.split(), *_LANGUAGE_NAMES.split()))
_REGION = re.compile(r"[-_ ](?:[a-z]{2}|[a-z]{4}|\d{3})\Z")


def is_language_name(column: str) -> bool:
    """Whether a column's name is that of a language, as in tables of parallel texts: `de`, `en-US`, `Deutsch`."""
    return _REGION.sub("", column.strip().casefold()) in _LANGUAGES


def normalize(name: str) -> str:
    """A column's name in lower case without spaces and punctuation."""
    return re.sub(r"[\W_]+", "", name.casefold())


def choose_translation(column: str) -> str:
    """The part of a name in two languages that is a usual one, such as `System` of `System / 系统` and `系统 (System)`;
    other names as they are."""
    parts = [part.strip() for part in re.split(r"[/|／｜()\[\]（）\n]", column) if part.strip()]
    if len(parts) == 1:
        parts = [part.strip() for part in re.findall(r"[\W_a-zA-Z\d]+|[^\W_a-zA-Z\d]+", parts[0]) if part.strip()]
    if len(parts) != 2 or not (known := [part for part in parts if _list_usual(part)]):
        return column
    first, second = (_list_usual(part) for part in parts)
    is_other_script = _is_latin(parts[0]) != _is_latin(parts[1])
    if is_other_script and not (first and second and first.isdisjoint(second)):
        return known[0]
    return known[0] if (first & second) - {"aspects"} else column


def _is_latin(text: str) -> bool:
    return all(letter < "\u0250" for letter in text)


def _list_usual(part: str) -> set[str]:
    """The fields that are often named like a part; `aspects` if aspects are."""
    name = normalize(part)
    return {field for field, names in NAMES.items() if name in names} | ({"aspects"} if name in ASPECTS else set())


def find_fields(column: str) -> list[str]:
    """The fields that a column of this name can be."""
    column = choose_translation(strip_number(strip_scale(column)))
    plain = {normalize(column), normalize(_PREFIX.sub("", column)), normalize(column.rsplit(".", 1)[-1])}
    plain |= {name.removeprefix(word) for word in OUTPUT_WORDS for name in plain if name.startswith(word)} & _INPUTS
    plain |= {name.removesuffix(word) for word in OUTPUT_WORDS for name in plain if name.endswith(word)} & _INPUTS
    numbered = {name.rstrip(digits) for name in plain}
    return [
        field
        for field, names in NAMES.items()
        if plain & set(names) or (field == "references" and numbered & set(names))
    ]


def strip_scale(column: str) -> str:
    """A column's name without a scale after it, as in `Fluency (1-5)`."""
    return _SCALE.sub("", column.rstrip()).rstrip()


def read_scale(column: str) -> tuple[int, int] | None:
    """The lowest and the highest number of the scale in a column's name; None if it names none."""
    match = _SCALE.search(column.rstrip())
    numbers = [int(text.replace("−", "-")) for text in re.findall(r"(?<!\d)[-−]?\d{1,9}", match[0])] if match else []
    return (min(numbers), max(numbers)) if len(numbers) > 1 else None


def strip_number(column: str) -> str:
    """A column's name without the number that tells it from an earlier one of the same name."""
    return _TWICE.sub("", column)


def read_verdict_word(text: str) -> str | None:
    """The verdict that a usual word means."""
    return VERDICT_WORDS.get(re.sub(r"\s+", "_", text.strip().casefold()))


_OPTION_NAMES = """
    winner wins win won is prefer prefers preferred preference better best chosen choice vote voted verdict
    besser gewinnt bevorzugt meilleur meilleure gagne mejor gana
"""
_OPTION_WORDS = frozenset(_OPTION_NAMES.split())


def read_option_name(name: str, systems: Sequence[str] = ()) -> str | None:
    """The verdict in the name of a column with true and false, such as `winner_a`, `B wins`, `winner_model_b`, `tie`;
    or `gpt wins`, by the two `systems` in their order."""
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).casefold()
    words = [word for word in re.split(r"[\W_]+", plain) if word and word not in _OPTION_WORDS]
    sides = {normalize(system): side for side, system in zip("ab", systems, strict=False)}
    return sides.get("".join(words)) or read_verdict_word("_".join(words))


_TRUTHS = (("no", "yes"), ("false", "true"), ("nein", "ja"), ("non", "oui"), ("incorrect", "correct"),
           ("wrong", "right"), ("fail", "pass"), ("bad", "good"))  # fmt: skip
_MOST_GRADES, _LEAST_GRADES = "abcdef", 3


def guess_numbers(labels: Iterable[str]) -> dict[str, int] | None:
    """Likely numbers of labels that may be judgements or not: 0 and 1 of no and yes, and grades from A, the best one,
    to F, which is 0. None for other labels."""
    words = {label.casefold() for label in labels}
    if pair := next((pair for pair in _TRUTHS if words == set(pair)), None):
        return {word: number for number, word in enumerate(pair)}
    if len(words) < _LEAST_GRADES or not words <= set(_MOST_GRADES):
        return None
    order = _MOST_GRADES if "e" in words else _MOST_GRADES.replace("e", "")
    return {word: len(order) - 1 - order.index(word) for word in sorted(words)}


_FILES = {
    "source": ("src", "source", "sources", "input", "inputs"),
    "context": ("context", "contexts", "prompt", "prompts", "question", "questions", "history"),
    "references": ("ref", "refs", "reference", "references", "gold", "target", "targets"),
    "group": ("documents", "docs", "groups"),
}


def find_file_role(name: str) -> str:
    """What a text file is by its name or folder: source, context, references, group, ratings, scores or outputs."""
    if ":" in name:
        return "scores" if "metric-scores" in name.split("/") else "ratings"
    folders, _, file = name.rpartition("/")
    parts = [part for folder in folders.split("/") for part in [normalize(folder).rstrip(digits)]]
    parts += [normalize(part).rstrip(digits) for part in re.split(r"[.\-_ ]", file) if part]
    if "systemoutputs" in parts or "outputs" in parts:
        return "outputs"
    for role, words in _FILES.items():
        if any(part in words or (role == "references" and re.fullmatch(r"ref[a-z]?", part)) for part in parts):
            return role
    return "outputs"


def name_system(name: str) -> str:
    """The system that a text file of outputs is named after."""
    file = name.rpartition("/")[2]
    return re.sub(r"\.(?:gz|txt|out|hyp|hypo|output)", "", file) or file
