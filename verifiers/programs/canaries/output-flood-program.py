while True: print('6')
