(declare-const x (_ BitVec 16))(declare-const y (_ BitVec 16))
(define-fun reference () (_ BitVec 16)
  ((_ extract 16 1) (bvadd ((_ zero_extend 1) x) ((_ zero_extend 1) y))))