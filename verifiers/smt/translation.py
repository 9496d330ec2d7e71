"""Base of the translations from our terms to one solver's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from verifiers.smt.language.terms import Function, Sort, Term, walk


class Translation(ABC):
    """Translator from our terms to one solver's; each sort, symbol and term is translated once."""

    def __init__(self) -> None:
        self._sorts: dict[Sort, Any] = {}
        self._functions: dict[Function, Any] = {}
        self._terms: dict[Term, Any] = {}

    def _term(self, root: Term) -> Any:
        for term in walk([root], self._terms):
            self._terms[term] = self._new_term(term)
        return self._terms[root]

    def _sort(self, sort: Sort) -> Any:
        if sort not in self._sorts:
            self._sorts[sort] = self._new_sort(sort)
        return self._sorts[sort]

    def _function(self, function: Function) -> Any:
        if function not in self._functions:
            self._functions[function] = self._new_function(function)
        return self._functions[function]

    @abstractmethod
    def _new_term(self, term: Term) -> Any:
        """Converts a term, whose arguments are already in `_terms`, to the solver's own term."""

    @abstractmethod
    def _new_sort(self, sort: Sort) -> Any: ...

    @abstractmethod
    def _new_function(self, function: Function) -> Any: ...
