"""Sentences as people count them, in many languages; and honest texts about code, with notes, with foreign names."""

# ruff: noqa: E501 - tables of texts

from __future__ import annotations

import pytest
from tables import table

from verifiers.checklists.document import Document
from verifiers.checklists.hard import HardVerifier
from verifiers.checklists.items import decide_item
from verifiers.checklists.spec import ChecklistSpec, CitationsItem, CitedSource, CountItem, NumbersItem, WordsItem
from verifiers.checklists.words.prose import language_of, sentences

SENTENCES = [
    ("He arrived at 5 p.m. The shop was shut.", 2), ("She lives in the U.S. now. He does not.", 2),
    ("See Fig. 3 and Sec. 4.2 for details. All is there.", 2), ("“Stop!” he cried. Nobody moved.", 2),
    ("Prof. Dr. h.c. Maria A. Weber of St. Gallen spoke.", 1), ("No. 7 is missing. We looked.", 2),
    ("Mr. and Mrs. Smith met Jan. 5, 2019. They danced.", 2), ("Well... I do not know. Maybe.", 2),
    ("This is vitamin C. It is healthy.", 2), ("Mt. Everest is high. Ft. Knox is not.", 2),
    ("Add 2 tbsp. of oil and 1 tsp. of salt. Stir.", 2), ("Is it I? It is I. So be it.", 3), ("i like tea. you do not.", 2),
    ("Das ist z. B. gut, d. h. richtig. Es gilt u. a. hier.", 2), ("Am 3. Mai kam Dr. Müller. Er blieb bis zum 5. Juni.", 2),
    ("Der 2. Weltkrieg endete 1945. Danach kam Frieden.", 2), ("M. Dupont est arrivé. Mme Durand aussi.", 2),
    ("Cf. p. 12 pour plus. Voir aussi l'art. 5 de la loi.", 2), ("La Sra. López vive en EE. UU. desde 2010. Trabaja allí.", 2),
    ("Это было в 1990 г. в Москве. Потом он уехал.", 2), ("今日は雨です。明日は晴れるでしょうか？はい。", 3),
    ("यह पहला वाक्य है। यह दूसरा है।", 2), ("این یک جمله است. آیا این سؤال است؟ بله.", 3), ("Սա առաջինն է։ Սա երկրորդն է։", 2),
    ("Αυτό είναι ένα. Τι είναι αυτό; Τίποτα.", 3), ("ይህ አንድ ነው። ይህ ሁለት ነው።", 2), ("Dhr. Jansen kwam om 10.30 uur. Hij bleef.", 2),
    ("Его глубина — 1642 м. Местные жители знают это.", 2), ("It lies at 1642 m. Few people go there.", 2),
    ("You did what?! I cannot believe it. Tell me more!", 3), ("Is it true?... I doubt it.", 2), ("What?!! No way.", 2),
    ("I waited… Then he left.", 2), ("I waited … and he left.", 1), ("Ich habe… Angst davor.", 1), ("Was?! Das glaube ich nicht.", 2),
    ("He said no. Five men left.", 2), ("¡¿Qué haces?! No lo creo.", 2), ("Quoi ?! Je ne le crois pas.", 2), ("何だと？！信じられない。", 2),
    ("「行きます。」と彼は言った。", 1), ("彼は来た。「はい。」と答えた。", 2), ("「もう帰る！」と叫んだ。彼は走った。", 2), ("「はい。」って言った。", 1),
    ("「おはよう。」「こんにちは。」", 2), ("「はい。」とても良い。", 2), ("“你好吗？”他问。", 1), ("Use apples, pears, etc. Then bake it.", 2),
    ("Es dauert 5 min. Danach ist es fertig.", 2), ("Там щуки, окуни и т. д. Летом сюда едут.", 2), ("В 1999 г. Иван уехал.", 1),
]  # fmt: skip


@table(("text", "number"), SENTENCES)
def test_sentences_are_those_that_people_count(text: str, number: int) -> None:
    assert len(sentences(text)) == number


@pytest.mark.parametrize("text", ["「a。" * 30_000, "“a. " * 20_000, "(a. " * 20_000])
def test_sentences_are_found_in_time_that_grows_with_the_text(text: str) -> None:
    assert sentences(text)


def test_a_language_is_known_by_its_little_words_or_its_script() -> None:
    texts = {
        "de": "Das ist nicht viel.",
        "fr": "C'est dans la maison.",
        "ru": "Это дом.",
        "fa": "این یک چیز است",
        "en": "Two apples",
    }
    assert {code: language_of(text) for code, text in texts.items()} == {code: code for code in texts}


HONEST = [
    "The name \u2067سعدی\u2069 is his.", "The name \u2068سعدی\u2069 is his.", "The name \u202bسعدی\u202c is his.",
    "Saadi (Persian: سعدی شیرازی) wrote it.", "علی‌رضا and others wrote it.", "The age is ۵۰\u200cساله in Persian.",
    "Ḥāfeẓ (حافظ\u200e), سَعْدی and Saʿdī wrote.", "خانه‌ی ما is “our house”.", "Fields: `a[0]`, `[x for x in y]`, `\"some words in a row\"`.",
    "Begin with `<!DOCTYPE html>` and `<html lang=\"en\">`.\nA comment is `<!-- like this one -->`, a blank `&nbsp;`.\n\n```html\n<p class=\"a\">Hi</p>\n<!-- c -->\n```\n",
    "The link `<a href=\"https://x.org\" title=\"go to the next page\">` opens `https://x.org`, not **`<b>`**.",
    "| Tag | Use |\n|---|---|\n| `<p>` | a paragraph |\n| `<!-- -->` | a comment |\n\nThat is it.", "Write `<q cite=\"x\">some words to be quoted</q>`.",
    "It was dry.[^1] It rained later.[^2]\n\n[^1]: For weeks [A].\n[^2]: So says A.", "Dry[^a] and cold[^a].\n\n[^a]: As felt.\n\n    > It was dry for six weeks in a row.",
]  # fmt: skip


@table("text", HONEST)
def test_names_in_other_scripts_code_and_notes_are_honest(text: str) -> None:
    items = (
        CountItem(name="w", of="words", least=3), WordsItem(name="f", forbidden=("secret", "lo")), CitationsItem(name="c", least=0),
        NumbersItem(name="n", facts=("50", "6")),
    )  # fmt: skip
    spec = ChecklistSpec(items=items, sources=(CitedSource(key="A", text="It was dry for six weeks in a row."),))
    verdict = HardVerifier().verify(spec, text)
    assert verdict.passed, verdict.reason


@pytest.mark.parametrize(
    "text",
    [
        "a \u2067abc\u2069 b",
        "a \u202eسعدی\u202c b",
        "a \u2067سعدی 12\u2069 b",
        "a \u2068سعدی abc\u2069 b",
        "a \u2067سعدی b",
    ],
)
def test_what_turns_a_text_round_cannot_be_read(text: str) -> None:
    assert Document(text).faults


@pytest.mark.parametrize("struck", ["~~rain~~", "<s>rain</s>", "<del>rain</del>", "~~a [rain](http://x.org) b~~"])
def test_what_is_struck_out_does_not_count(struck: str) -> None:
    assert not decide_item(WordsItem(name="w", required=("rain",)), Document(f"The {struck} snow falls."), ()).holds
    assert not decide_item(WordsItem(name="w", forbidden=("rain",)), Document(f"The {struck} snow falls."), ()).holds


def test_a_word_in_single_letters_is_found_behind_another_letter() -> None:
    assert not decide_item(WordsItem(name="w", forbidden=("secret",)), Document("It is a s e c r e t."), ()).holds
