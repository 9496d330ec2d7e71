(declare-fun inv (Int Int) Bool)
(assert (! (and
  (forall ((n Int)) (=> (>= n 0) (inv 0 n)))
  (forall ((i Int) (n Int)) (=> (and (inv i n) (< i n)) (inv (+ i 1) n)))
  (forall ((i Int) (n Int)) (=> (and (inv i n) (not (< i n))) (= i n)))) :named goal))