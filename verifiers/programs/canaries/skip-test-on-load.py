import unittest
raise unittest.SkipTest('later')
