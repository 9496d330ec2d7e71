(declare-fun lemma (Int) Bool)(declare-const x Int)
(assert (lemma x))(assert (! (= (* x x) 2) :named goal))