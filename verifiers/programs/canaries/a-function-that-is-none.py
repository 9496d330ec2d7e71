solve = 14
