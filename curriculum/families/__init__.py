"""Families of questions that one line on a calculator answers, one file each; each family is a taskset.

Open `phrased.py` first: it defines their common class.
"""
