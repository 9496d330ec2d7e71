"""Texts against lists of items: hard ones by code, soft ones by a model judge."""
