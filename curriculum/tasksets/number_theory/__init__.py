"""Tasksets of number theory, one file each: fractions, primes, divisibility, congruences, digits and bases."""
