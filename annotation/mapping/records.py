"""Nested records of known tools as flat rows: a reader for each, which a preset names.

A flat row has the names of `FLAT` as columns, and the tool's own ones, such as `data.prompt`. A mapping of flat rows
can be changed like any other."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import orjson

from evalapp.translation import gettext as _

from .names import read_verdict_word
from .numbers import is_number
from .values import split_message

Row = dict[str, Any]
Flatten = Callable[[Row], Iterator[Row]]

#: Columns of flat rows.
FLAT = (
    "item", "context", "source", "reference", "group", "system", "text", "rater", "aspect", "value", "simulated",
    "system_a", "text_a", "system_b", "text_b", "verdict",
)  # fmt: skip


class WrongRecord(ValueError):
    """A record without the structure of its format: the column, and what is wrong with it."""

    def __init__(self, column: str, message: str) -> None:
        super().__init__(message)
        self.column, self.message = column, message


def read_list(row: Mapping[str, Any], column: str) -> list[Any]:
    """The list in a column; an empty one if there is none. Raises `WrongRecord` for other values."""
    value = row.get(column)
    if value is None:
        return []
    if not isinstance(value, list):
        raise WrongRecord(column, _("%(column)s must be a list.", column=column))
    return value


def read_object(row: Mapping[str, Any], column: str, depth: int = 1) -> Row:
    """The object in a column, or made of the columns with dotted names below it. `depth`: objects in objects."""
    value = row.get(column)
    if isinstance(value, dict):
        return value
    if value is not None:
        raise WrongRecord(column, _("%(column)s must be an object.", column=column))
    start = f"{column}."
    parts = {name[len(start) :]: value for name, value in row.items() if name.startswith(start)}
    if depth == 1:
        return parts
    names = dict.fromkeys(name.partition(".")[0] for name in parts)
    return {name: read_object(parts, name, depth - 1) if name not in parts else parts[name] for name in names}


def read_objects(row: Mapping[str, Any], column: str) -> list[Row]:
    """The objects in a column's list."""
    values = read_list(row, column)
    if not all(isinstance(value, dict) for value in values):
        raise WrongRecord(column, _("%(column)s must be a list of objects.", column=column))
    return values


def read_texts(values: list[Any], column: str) -> list[str]:
    if not all(isinstance(value, str) for value in values):
        raise WrongRecord(column, _("%(column)s must be a list of texts.", column=column))
    return values


def list_messages(row: Mapping[str, Any], column: str) -> list[tuple[str, str]]:
    """(role, text) of a chat."""
    result = []
    for message in read_objects(row, column):
        role, text = split_message(message)
        if not isinstance(role, str) or not isinstance(text, str):
            raise WrongRecord(column, _("Each message in %(column)s needs a role and a content.", column=column))
        result.append((role, text))
    return result


# ---- evaluation of language models ------------------------------------------------------------------------------


def flatten_alpaca_outputs(row: Row) -> Iterator[Row]:
    """Outputs of alpaca_eval: `instruction`, sometimes an `input`, `output`, `generator`."""
    yield {"context": _join(row.get("instruction"), row.get("input")), "system": row.get("generator"),
           "text": row.get("output"), "dataset": row.get("dataset")}  # fmt: skip


def flatten_alpaca_annotations(row: Row) -> Iterator[Row]:
    """Annotations of alpaca_eval: a preference of 1 is for the first output, 2 for the second, 1.5 (formerly 0) a tie;
    a weighted one lies between. Outputs that were not compared have none."""
    preference = row.get("preference")
    if preference is None:
        return
    if type(preference) not in (int, float) or not (preference == 0 or 1 <= preference <= 2):
        raise WrongRecord("preference", _("preference must be a number from 1 to 2, or 0 for a tie."))
    verdict = "tie" if preference in (0, 1.5) else "a" if preference < 1.5 else "b"
    yield {
        "context": _join(row.get("instruction"), row.get("input")), "dataset": row.get("dataset"),
        "system_a": row.get("generator_1"), "text_a": row.get("output_1"),
        "system_b": row.get("generator_2"), "text_b": row.get("output_2"),
        "rater": row.get("annotator"), "aspect": "preference", "verdict": verdict, "simulated": True,
    }  # fmt: skip


def _join(instruction: Any, more: Any) -> Any:
    return f"{instruction}\n\n{more}" if isinstance(more, str) and more.strip() else instruction


def name_turn(question: Any, turn: Any) -> str:
    """The item of a turn of an MT-Bench question: `81-1`, `81-2`."""
    return f"{question}-{turn}"


def flatten_mt_bench_questions(row: Row) -> Iterator[Row]:
    """Questions of MT-Bench: each turn is an item, with the questions up to it as context."""
    turns, references = read_texts(read_list(row, "turns"), "turns"), read_list(row, "reference")
    for number in range(1, len(turns) + 1):
        yield {
            "item": name_turn(row.get("question_id"), number), "context": turns[:number],
            "reference": references[number - 1] if number <= len(references) else None,
            "group": row.get("question_id"), "category": row.get("category"),
        }  # fmt: skip


def flatten_mt_bench_answers(row: Row) -> Iterator[Row]:
    """Answers of MT-Bench: `choices` with an answer for each turn. Further choices are further systems."""
    for number, choice in enumerate(read_objects(row, "choices")):
        system = f"{row.get('model_id')} ({number + 1})" if number else row.get("model_id")
        for turn, text in enumerate(read_list(choice, "turns"), 1):
            yield {"item": name_turn(row.get("question_id"), turn), "group": row.get("question_id"), "system": system,
                   "text": text}  # fmt: skip


def flatten_mt_bench_scores(row: Row) -> Iterator[Row]:
    """Scores of single MT-Bench answers by a model. The score -1 means that the judgement had none."""
    if row.get("score") == -1:
        return
    yield {
        "item": name_turn(row.get("question_id"), row.get("turn")), "system": row.get("model"),
        "rater": _read_judge(row), "aspect": "score", "value": row.get("score"), "simulated": True,
    }  # fmt: skip


def flatten_mt_bench_pairs(row: Row) -> Iterator[Row]:
    """Pairwise MT-Bench judgements by a model, in both orders: a win in one order only is a tie, as in FastChat; errors
    are left out."""
    winners = [row.get("g1_winner"), row.get("g2_winner")]
    known = {"model_1": "a", "model_2": "b", "tie": "tie"}
    if "error" in winners:
        return
    for name, winner in zip(("g1_winner", "g2_winner"), winners, strict=True):
        if not isinstance(winner, str) or winner not in known:
            raise WrongRecord(name, _("%(column)s must be model_1, model_2, tie or error.", column=name))
    yield {
        "item": name_turn(row.get("question_id"), row.get("turn")), "system_a": row.get("model_1"),
        "system_b": row.get("model_2"), "rater": _read_judge(row), "aspect": "preference",
        "verdict": known[str(winners[0])] if winners[0] == winners[1] else "tie", "simulated": True,
    }  # fmt: skip


def _read_judge(row: Row) -> Any:
    judge = row.get("judge")
    return judge[0] if isinstance(judge, list) and judge else judge


_WINNERS = {"model_a": "a", "model_b": "b", "tie": "tie", "tie (bothbad)": "both_bad", "both_bad": "both_bad"}


def flatten_arena(row: Row) -> Iterator[Row]:
    """Battles of the Chatbot Arena, and human judgements of MT-Bench. The context has the user's turns up to the one
    that was judged, because the models' own turns differ; the texts are the answers to it."""
    verdict = _WINNERS.get(str(row.get("winner")).strip().lower())
    if verdict is None:
        raise WrongRecord("winner", _("winner must be model_a, model_b, tie or tie (bothbad)."))
    question, judge = row.get("question_id", row.get("id")), _read_judge(row)
    result: Row = {
        "item": question, "group": question, "system_a": row.get("model_a"), "system_b": row.get("model_b"),
        "rater": judge or "arena", "aspect": "preference", "verdict": verdict,
        "simulated": isinstance(judge, str) and judge.lower().startswith("gpt"), "language": row.get("language"),
    }  # fmt: skip
    turn = row.get("turn")
    for side in ("a", "b"):
        messages = list_messages(row, f"conversation_{side}")
        asked = [text for role, text in messages if role in ("user", "human")]
        answers = [text for role, text in messages if role not in ("user", "human", "system")]
        if type(turn) is int and 0 < turn < len(answers):
            asked, answers = asked[:turn], answers[:turn]
        result["context"], result[f"text_{side}"] = asked, answers[-1] if answers else ""
    if type(question) is int and turn is not None:
        result["item"] = name_turn(question, turn)
    yield result


def flatten_arena_votes(row: Row) -> Iterator[Row]:
    """Votes of the Chatbot Arena with a column of 0 and 1 for each possible winner; prompts and responses are lists of
    turns as JSON."""
    columns = {"winner_model_a": "a", "winner_model_b": "b", "winner_tie": "tie"}
    won = [verdict for name, verdict in columns.items() if str(row.get(name)).strip().lower() in ("1", "1.0", "true")]
    if len(won) != 1:
        raise WrongRecord("winner_model_a", _("One of winner_model_a, winner_model_b and winner_tie must be 1."))
    texts = {name: _read_turns(row, name) for name in ("prompt", "response_a", "response_b")}
    yield {
        "item": row.get("id"), "context": texts["prompt"], "system_a": row.get("model_a"),
        "text_a": next(iter(texts["response_a"][-1:]), ""), "system_b": row.get("model_b"),
        "text_b": next(iter(texts["response_b"][-1:]), ""), "rater": "arena", "aspect": "preference",
        "verdict": won[0],
    }  # fmt: skip


def _read_turns(row: Row, column: str) -> list[str]:
    """The turns in a cell; an answer that was not given is null in the list."""
    value = row.get(column)
    if isinstance(value, str):
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError:
            return [value]
    turns = value if isinstance(value, list) else [value]
    return read_texts(["" if turn is None else turn for turn in turns], column)


def flatten_lm_eval(row: Row) -> Iterator[Row]:
    """Samples of lm-evaluation-harness: prompt, target and response, with each metric as a rating by the harness.
    A multiple-choice sample has the continuation with the highest likelihood as text."""
    arguments = read_arguments(row.get("arguments") or read_object(row, "arguments", 2))
    responses = read_list(row, "resps")
    first: Any = responses[0] if responses else ""
    while isinstance(first, list) and len(first) == 1:
        first = first[0]
    if isinstance(first, list):
        scores = [_read_likelihood(value) for value in read_list(row, "filtered_resps")]
        best = max(range(len(scores)), key=scores.__getitem__, default=0)
        first = arguments[best][1] if best < len(arguments) else ""
    base = {
        "item": row.get("doc_id"), "context": arguments[0][0] if arguments else None,
        "reference": None if row.get("target") is None else str(row["target"]).strip(), "text": str(first).strip(),
    }  # fmt: skip
    metrics = [str(name) for name in read_list(row, "metrics")]
    name = row.get("filter")
    filtered = "" if name in (None, "none") else f" ({name})"
    rated = [metric for metric in metrics if is_number(row.get(metric))]
    for metric in rated:
        yield {**base, "rater": "lm-evaluation-harness", "aspect": f"{metric}{filtered}", "value": row[metric],
               "simulated": True}  # fmt: skip
    if not rated:
        yield base


def read_arguments(value: Any) -> list[tuple[Any, Any]]:
    """(prompt, continuation) of each request, of both layouts: `gen_args_0` with `arg_0`, or a list of lists."""
    if isinstance(value, dict):
        value = [[args.get("arg_0"), args.get("arg_1")] for args in value.values() if isinstance(args, dict)]
    if not isinstance(value, list):
        raise WrongRecord("arguments", _("%(column)s must be a list.", column="arguments"))
    return [(pair[0], pair[1] if len(pair) > 1 else "") for pair in value if isinstance(pair, list) and pair]


def _read_likelihood(value: Any) -> float:
    while isinstance(value, list) and value:
        value = value[0]
    return float(value) if is_number(value) else float("-inf")


def flatten_chat(row: Row) -> Iterator[Row]:
    """Chats with roles: the last answer is the output, the messages before it are the context. Instructions to the
    system are left out."""
    column = "messages" if "messages" in row else "conversations"
    messages = [(role, text) for role, text in list_messages(row, column) if role != "system"]
    if not messages or messages[-1][0] in ("user", "human"):
        raise WrongRecord(column, _("The last message must be an answer."))
    others = {name: value for name, value in row.items() if name != column}
    yield {**others, "context": [text for _role, text in messages[:-1]], "text": messages[-1][1]}


# ---- annotation tools -------------------------------------------------------------------------------------------

_SIDES = {"left": "a", "right": "b", "tie": "tie"}
#: The member of a task's `data` with the aspects by the names of their controls: Label Studio refuses most characters.
CONTROLS = "aspects_by_control"


def name_person(person: Any) -> str:
    """The name of an annotator in Label Studio: a number, or an object with an e-mail address."""
    if isinstance(person, dict):
        person = person.get("email") or person.get("username") or person.get("id")
    return "" if person is None else str(person)


def _list_results(row: Row) -> Iterator[tuple[str, Row]]:
    """(annotator, result) of each finished annotation of a Label Studio task."""
    for annotation in read_objects(row, "annotations"):
        if not annotation.get("was_cancelled"):
            person = name_person(annotation.get("completed_by"))
            for result in read_objects(annotation, "result"):
                yield person or _read_note(result), result


def _read_note(result: Row) -> str:
    """The first note of a result: exports of evalapp have the rater there."""
    notes = read_object(result, "meta").get("text")
    return notes[0] if isinstance(notes, list) and notes and isinstance(notes[0], str) else ""


def _read_data(row: Row) -> tuple[Row, Row]:
    """The columns of a task's `data`, and the names of aspects by control, which exports of evalapp have there."""
    data = read_object(row, "data")
    kept = {name: value for name, value in data.items() if name.partition(".")[0] != CONTROLS}
    return {f"data.{name}": value for name, value in kept.items()}, read_object(data, CONTROLS)


def _name_aspect(result: Row, aspects: Row) -> str:
    control = str(result.get("from_name"))
    return str(aspects.get(control, control))


def flatten_label_studio_pairs(row: Row) -> Iterator[Row]:
    """Tasks of Label Studio with pairwise results, or a choice of the better text. The task's texts are in `data.*`."""
    data, aspects = _read_data(row)
    results = list(_list_results(row))
    for person, result in results:
        value = read_object(result, "value")
        base = {**data, "item": row.get("id"), "rater": person, "aspect": _name_aspect(result, aspects)}
        if result.get("type") == "pairwise":
            selected = value.get("selected")
            if not isinstance(selected, str) or selected not in _SIDES:
                raise WrongRecord("annotations", _("The selected side must be left or right."))
            yield {**base, "verdict": _SIDES[selected]}
        elif result.get("type") == "choices" and len(choices := read_list(value, "choices")) == 1:
            yield {**base, "verdict": read_verdict_word(str(choices[0])) or str(choices[0])}
    if not results:  # the texts of a task that nobody has judged yet
        yield {**data, "item": row.get("id")}


def flatten_label_studio_ratings(row: Row) -> Iterator[Row]:
    """Tasks of Label Studio with ratings, numbers, and single choices."""
    data, aspects = _read_data(row)
    results = list(_list_results(row))
    for person, result in results:
        value: Any = read_object(result, "value")
        value = value.get(
            {"rating": "rating", "number": "number", "choices": "choices"}.get(str(result.get("type")), "")
        )
        if isinstance(value, list):
            value = value[0] if len(value) == 1 else None
        if value is not None:
            yield {**data, "task": row.get("id"), "rater": person, "aspect": _name_aspect(result, aspects),
                   "value": value}  # fmt: skip
    if not results:
        yield {**data, "task": row.get("id")}


def flatten_argilla(row: Row) -> Iterator[Row]:
    """Records of Argilla 2 (`responses` by question) and 1 (a list with `values`). Only submitted ones count."""
    base = {
        **{f"fields.{name}": value for name, value in read_object(row, "fields").items()},
        **{f"metadata.{name}": value for name, value in read_object(row, "metadata").items()},
    }
    if isinstance(stored := base.pop("metadata.judgements", None), str):
        # Exports of evalapp: Argilla accepts responses by its own users only.
        yield from _read_judgements(base, stored)
    elif isinstance(row.get("responses"), list):
        for response in read_objects(row, "responses"):
            if response.get("status", "submitted") == "submitted":
                for question, answer in read_object(response, "values").items():
                    yield from _flatten_answer(base, response.get("user_id"), question, answer)
    else:
        for question, answers in read_object(row, "responses").items():
            for answer in read_objects({question: answers}, question):
                if answer.get("status", "submitted") == "submitted":
                    yield from _flatten_answer(base, answer.get("user_id"), question, answer)


def _read_judgements(base: Row, stored: str) -> Iterator[Row]:
    try:
        judgements = orjson.loads(stored)
    except orjson.JSONDecodeError as error:
        raise WrongRecord("metadata.judgements", _("It is not JSON: %(error)s.", error=error)) from error
    for one in read_objects({"judgements": judgements}, "judgements"):
        yield {**base, "rater": one.get("rater"), "aspect": one.get("aspect"), "value": one.get("value")}
    if not judgements:
        yield base


def _flatten_answer(base: Row, person: Any, question: str, answer: Any) -> Iterator[Row]:
    value = answer.get("value") if isinstance(answer, dict) else answer
    if type(value) in (int, float, str):
        yield {**base, "rater": person, "aspect": question, "value": value}


def flatten_potato(row: Row) -> Iterator[Row]:
    """Answers of Potato: `label_annotations` has the labels of each question, or columns `question:::label`."""
    person = row.get("user_id", row.get("user"))
    others = {name: value for name, value in row.items() if ":::" not in name and not name.startswith(_POTATO)}
    base = {**others, "rater": person}
    for question, labels in read_object(row, "label_annotations", 2).items():
        if isinstance(labels, dict) and len(labels) == 1:
            label, value = next(iter(labels.items()))
            yield {**base, "aspect": question, "value": label if value in (True, "true", label) else value}
    for name, value in row.items():
        question, separator, label = name.partition(":::")
        if separator and value not in (None, ""):
            yield {**base, "aspect": question, "value": label}


_POTATO = ("label_annotations", "span_annotations", "behavioral_data", "user")


def flatten_prodigy_pairs(row: Row) -> Iterator[Row]:
    """Choices of Prodigy between texts: the accepted option is better than each other one. The ids name the systems."""
    options, accepted = read_objects(row, "options"), read_list(row, "accept")
    if row.get("answer") != "accept" or len(accepted) != 1:
        return
    for option in options:
        if option.get("id") in accepted:
            continue
        best = next((other for other in options if other.get("id") in accepted), None)
        if best is None:
            raise WrongRecord("accept", _("accept names an option that does not exist."))
        # The order of the options stays, so that equal pairs have the same first system.
        first, second = (best, option) if options.index(best) < options.index(option) else (option, best)
        yield {
            "context": row.get("text"), "rater": _name_session(row), "aspect": "preference",
            "system_a": first.get("id"), "text_a": first.get("text"), "system_b": second.get("id"),
            "text_b": second.get("text"), "verdict": "a" if first is best else "b",
        }  # fmt: skip


def flatten_prodigy_ratings(row: Row) -> Iterator[Row]:
    """Choices of Prodigy between numbers. Other fields of the task stay."""
    accepted = read_list(row, "accept")
    if row.get("answer") == "accept" and len(accepted) == 1:
        base = {
            name: value for name, value in row.items() if not name.startswith(("_", "config.")) and name not in _PRODIGY
        }
        yield {**base, "rater": _name_session(row), "aspect": str(row.get("label") or "rating"), "value": accepted[0]}


_PRODIGY = frozenset({"options", "accept", "answer", "config", "label"})


def _name_session(row: Row) -> Any:
    return row.get("_annotator_id") or row.get("_session_id")


def flatten_doccano(row: Row) -> Iterator[Row]:
    """Texts of doccano with one label. Other fields of the import stay."""
    labels = row.get("label", row.get("labels"))
    labels = labels if isinstance(labels, list) else [labels]
    if len(labels) == 1 and type(labels[0]) in (int, float, str):
        yield {**{name: value for name, value in row.items() if name not in ("label", "labels", "Comments")},
               "value": labels[0]}  # fmt: skip


# ---- dialogue research ------------------------------------------------------------------------------------------

_SPEAKER = re.compile(r"\A(?:User|System|Speaker ?\d|A|B|Bot|Human)\s*:\s*", re.IGNORECASE)


def split_turns(text: Any) -> Any:
    """The turns of a context with one turn a line, without the names of speakers."""
    if not isinstance(text, str):
        return text
    return [_SPEAKER.sub("", line).strip() for line in text.splitlines() if line.strip()]


def flatten_usr(row: Row) -> Iterator[Row]:
    """Contexts of USR with `responses`: model, text, and for each aspect a list of ratings in the annotators' order."""
    people = read_list(row, "annotators")
    base = {"context": split_turns(row.get("context")), "source": _strip(row.get("fact"))}
    for response in read_objects(row, "responses"):
        output = {**base, "system": response.get("model"), "text": _strip(response.get("response"))}
        yield from _list_ratings(output, response, people, ("response", "model"))


def flatten_turn_ratings(row: Row) -> Iterator[Row]:
    """Responses of FED and DSTC: `annotations` has a list of ratings for each aspect. Whole dialogues, which have no
    response, are left out."""
    text = row.get("response")
    if text is None:
        return
    system = row.get("system", row.get("model"))
    base = {"context": split_turns(row.get("context")), "system": system,
            "text": _SPEAKER.sub("", str(text)).strip()}  # fmt: skip
    yield from _list_ratings(base, read_object(row, "annotations"), [], ())


def _list_ratings(base: Row, aspects: Row, people: list[Any], others: tuple[str, ...]) -> Iterator[Row]:
    for aspect, values in aspects.items():
        if aspect in others:
            continue
        for number, value in enumerate(values if isinstance(values, list) else [values]):
            if is_number(value):
                rater = people[number] if number < len(people) else f"rater {number + 1}"
                yield {**base, "rater": str(rater), "aspect": aspect, "value": value}


def flatten_parallel_lists(row: Row) -> Iterator[Row]:
    """A document with `contexts`, `responses`, `scores`, `references` and `models` as lists of equal length, if it has
    them."""
    columns = [
        name for name in ("contexts", "responses", "references", "models", "scores") if row.get(name) is not None
    ]
    lists = {name: read_list(row, name) for name in columns}
    if len({len(values) for values in lists.values()}) > 1:
        sizes = ", ".join(f"{name}: {len(values):,}" for name, values in lists.items())
        raise WrongRecord("responses", _("The lists have different lengths (%(sizes)s).", sizes=sizes))
    names = {"contexts": "context", "responses": "text", "references": "reference", "models": "system",
             "scores": "value"}  # fmt: skip
    for number in range(len(next(iter(lists.values()), []))):
        flat = {names[name]: values[number] for name, values in lists.items()}
        if isinstance(flat.get("context"), str):
            flat["context"] = split_turns(flat["context"])
        yield {**flat, "rater": "mean", "aspect": "overall"}


def _strip(text: Any) -> Any:
    return text.strip() if isinstance(text, str) else text
