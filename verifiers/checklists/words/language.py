"""Language detection by script or function words, as far as sentences and numbers need it.

A wrong guess costs an abbreviation or requires a number to be written plainly; it never lets a text pass.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache

from verifiers.checklists.words.characters import script_of

LITTLE_WORDS = {
    "en": "the of and is was were to in that it for with are this from by an be has have not which you he she they"
    " do i at as on but we what no so or me my a",
    "de": "der die das und ist nicht ein eine mit von zu den im sich auf für auch dem des wird sind es wir ich hat"
    " am zum bis er vom bei nach wurde oder aber wie noch nur",
    "fr": "le la les et est une des du que qui dans pour pas sur au ne ce il elle sont avec plus nous par aux ont",
    "es": "el la los las y es una de que en por con para se del al no su como más fue son lo pero ha",
    "it": "il la gli e è una di che in per con del della non si da sono al più nel alla dei le ha anche",
    "pt": "o a os as e é uma de que em por com para se do da não no na dos das mais foi ao são",
    "nl": "de het een en is van in op te dat niet met voor zijn aan er ook als bij door maar naar wordt werd",
    "pl": "w i z na się nie jest do to że jak po ale od za przez ma tym być są jego dla oraz",
    "sv": "och att det som en på är av för med den till inte har ett om var jag men",
    "da": "og at det som en på er af for med den til ikke har et om var jeg men blev",
    "tr": "ve bir bu için ile da de çok olarak daha gibi olan en ama ne var",
    "cs": "a je v na se že z to do pro jako ale by po od za jeho jsou byl při",
    "id": "yang dan di dengan untuk dari ini pada adalah itu ke dalam tidak akan oleh",
}
BY_SCRIPT = {
    "CYRILLIC": "ru", "GREEK": "el", "ARABIC": "ar", "HEBREW": "he", "DEVANAGARI": "hi", "CJK": "zh", "HIRAGANA": "ja",
    "KATAKANA": "ja", "HANGUL": "ko", "ARMENIAN": "hy", "ETHIOPIC": "am", "MYANMAR": "my", "THAI": "th",
    "BENGALI": "bn", "TAMIL": "ta", "TELUGU": "te", "GUJARATI": "gu", "GEORGIAN": "ka",
}  # fmt: skip
WHERE = {word: [code for code in LITTLE_WORDS if word in LITTLE_WORDS[code].split()] for word in
         " ".join(LITTLE_WORDS.values()).split()}  # fmt: skip
LETTERS = {"pl": "łęąśżź", "cs": "řůě", "tr": "ğı", "pt": "ãõ", "es": "ñ", "de": "ß", "fr": "œ"}
"""Distinctive letters, counted outside names. They weigh more than function words, which languages share."""
UNKNOWN = re.compile("[ățșőűơư]", re.IGNORECASE)
"""Letters of unsupported languages with Latin script."""
COMMA = frozenset({"de", "fr", "es", "it", "pt", "nl", "pl", "sv", "da", "tr", "cs", "id", "ru", "el", "hy", "ka"})
"""Languages with a decimal comma; Mexican Spanish, which has a point, is recognised by its numbers."""
ENOUGH = 8
"""Words without any function word from which the language counts as unsupported."""


@lru_cache(maxsize=256)
def language_of(text: str, otherwise: str = "en") -> str:
    """Returns a text's language code, such as `en`; `otherwise` if unknown, empty for a longer text in an unsupported
    language."""
    scripts = Counter(script_of(one) for one in text[:20_000] if one.isalpha())
    script = max(scripts, key=lambda one: scripts[one], default="LATIN")
    if script != "LATIN":
        if script in ("CJK", "HIRAGANA", "KATAKANA") and scripts["HIRAGANA"] + scripts["KATAKANA"]:
            return "ja"
        return "fa" if script == "ARABIC" and re.search("[پچژگک]", text) else BY_SCRIPT.get(script, "")
    small = text[:20_000].casefold()
    found = re.findall(r"[^\W\d_]+", small)
    votes: Counter[str] = Counter()
    for word in found:
        votes.update({code: 6 // len(WHERE[word]) for code in WHERE.get(word, ())})
    unnamed = " ".join(re.findall(r"(?<![^\W\d_])[^\W\d_A-Z][^\W\d_]*", text[:20_000]))
    votes.update({code: 6 * sum(map(unnamed.count, letters)) for code, letters in LETTERS.items()})
    if len(UNKNOWN.findall(unnamed)) > 1:
        return ""
    best = max(LITTLE_WORDS, key=lambda code: votes[code])
    if votes[best] >= 3:
        return "en" if votes["en"] == votes[best] else best
    return otherwise if len(found) < ENOUGH or votes["en"] else ""
