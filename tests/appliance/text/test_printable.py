"""Text of strangers is shown and does nothing, whether or not it is looked at sign by sign."""

from __future__ import annotations

import sys
import unicodedata

from appliance.text.printable import printable

HIDDEN = {"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"}


def test_each_sign_that_can_do_something_is_an_escape_and_every_other_one_itself() -> None:
    for code in range(sys.maxunicode + 1):
        sign = chr(code)
        escaped = " " if sign == "\t" else sign.encode("unicode_escape").decode()
        wanted = escaped if unicodedata.category(sign) in HIDDEN else sign
        if printable(sign) != wanted:
            raise AssertionError(f"U+{code:04X} is shown as {printable(sign)!r}")


def test_a_text_is_cut_where_it_is_too_long_also_by_its_escapes() -> None:
    assert printable("a plain one", limit=7) == "a plai…"
    assert printable("\x1b[2J", limit=5) == "\\x1b…"
    assert printable("four", limit=4) == "four"


def test_line_ends_are_kept_where_they_are_asked_for() -> None:
    assert printable("a\nb\tc", lines=True) == "a\nb c"
    assert printable("a\nb") == "a\\nb"
