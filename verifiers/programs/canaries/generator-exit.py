def solve(numbers):
    raise GeneratorExit
