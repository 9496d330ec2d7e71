import glob
for name in glob.glob('/work/*') + glob.glob('/tmp/*'):
    if not name.endswith('program.py'):
        print(open(name).read())
