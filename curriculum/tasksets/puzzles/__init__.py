"""Puzzles, one file each: logic, grids, colourings, calendars, constraints, shortest ways and hidden games.

Each generator proves by search that its question has the stated answer.
"""
