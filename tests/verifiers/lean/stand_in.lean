/-
A small Lean library for tests: the logic that Lean's elaborator, its kernel and its tactics expect to find, stated anew,
and no more. Names, arguments and the order of constructors are Lean's own, because native code counts on them.
`stand_in.py` appends what binds notation and tactics to the shared library.
-/
prelude
set_option linter.all false
set_option linter.defProp false
set_option genCtorIdx false
universe u v w

/-! ## For the compiler -/

unsafe axiom lcErased : Type
unsafe axiom lcAny : Type
unsafe axiom lcVoid : Type
set_option bootstrap.inductiveCheckResultingUniverse false in
inductive PUnit : Sort u where
  | unit : PUnit
abbrev Unit : Type := PUnit
@[match_pattern] abbrev Unit.unit : Unit := PUnit.unit
unsafe axiom lcProof {α : Prop} : α
unsafe axiom lcCast {α : Sort u} {β : Sort v} (a : α) : β
unsafe axiom lcUnreachable {α : Sort u} : α

/-! ## Equality -/

inductive Eq {α : Sort u} : α → α → Prop where
  | refl (a : α) : Eq a a
@[match_pattern] def rfl {α : Sort u} {a : α} : Eq a a := Eq.refl a
abbrev Eq.ndrec.{i, j} {α : Sort j} {a : α} {motive : α → Sort i} (m : motive a) {b : α} (h : Eq a b) : motive b :=
  h.rec m
theorem Eq.subst {α : Sort u} {motive : α → Prop} {a b : α} (h : Eq a b) (m : motive a) : motive b :=
  Eq.ndrec m h
theorem Eq.symm {α : Sort u} {a b : α} (h : Eq a b) : Eq b a :=
  Eq.subst (motive := fun c => Eq c a) h rfl
theorem Eq.trans {α : Sort u} {a b c : α} (h : Eq a b) (k : Eq b c) : Eq a c :=
  Eq.subst (motive := fun d => Eq a d) k h
def Eq.mp {α β : Sort u} (h : Eq α β) (a : α) : β := h.rec a
def Eq.mpr {α β : Sort u} (h : Eq α β) (b : β) : α := h.symm.rec b
def cast {α β : Sort u} (h : Eq α β) (a : α) : β := h.rec a
theorem congrArg {α : Sort u} {β : Sort v} {a b : α} (f : α → β) (h : Eq a b) : Eq (f a) (f b) :=
  Eq.subst (motive := fun c => Eq (f a) (f c)) h rfl
theorem congrFun {α : Sort u} {β : α → Sort v} {f g : (x : α) → β x} (h : Eq f g) (a : α) : Eq (f a) (g a) :=
  Eq.subst (motive := fun (k : (y : α) → β y) => Eq (f a) (k a)) h (Eq.refl (f a))
theorem congrFun' {α : Sort u} {β : Sort v} {f g : α → β} (h : Eq f g) (a : α) : Eq (f a) (g a) :=
  congrFun h a
theorem congr {α : Sort u} {β : Sort v} {f g : α → β} {a b : α} (h : Eq f g) (k : Eq a b) : Eq (f a) (g b) :=
  Eq.trans (congrFun h a) (congrArg g k)

inductive HEq {α : Sort u} : α → {β : Sort u} → β → Prop where
  | refl (a : α) : HEq a a
@[match_pattern] def HEq.rfl {α : Sort u} {a : α} : HEq a a := HEq.refl a
theorem eq_of_heq {α : Sort u} {a b : α} (h : HEq a b) : Eq a b :=
  @HEq.rec α a (fun {β} c _ => (e : Eq α β) → Eq (cast e a) c) (fun (_ : Eq α α) => Eq.refl a) α b h rfl
theorem heq_of_eq {α : Sort u} {a b : α} (h : Eq a b) : HEq a b := h.rec (HEq.refl a)

/-! ## Propositions -/

inductive True : Prop where
  | intro : True
inductive False : Prop
def Not (a : Prop) : Prop := a → False
def False.elim {C : Sort u} (h : False) : C := h.rec
def absurd {a : Prop} {b : Sort v} (h : a) (k : Not a) : b := (k h).rec
@[reducible] def Ne {α : Sort u} (a b : α) : Prop := Not (Eq a b)
structure And (a b : Prop) : Prop where
  intro ::
  left : a
  right : b
inductive Or (a b : Prop) : Prop where
  | inl (h : a) : Or a b
  | inr (h : b) : Or a b
structure Iff (a b : Prop) : Prop where
  intro ::
  mp : a → b
  mpr : b → a
theorem Iff.refl (a : Prop) : Iff a a := Iff.intro (fun h => h) (fun h => h)
theorem Iff.rfl {a : Prop} : Iff a a := Iff.refl a
inductive Exists {α : Sort u} (p : α → Prop) : Prop where
  | intro (w : α) (h : p w) : Exists p
class inductive Nonempty (α : Sort u) : Prop where
  | intro (val : α) : Nonempty α

/-! ## Data -/

def id {α : Sort u} (a : α) : α := a
def Function.const {α : Sort u} (β : Sort v) (a : α) : β → α := fun _ => a
inductive Bool : Type where
  | false
  | true
export Bool (false true)
def cond {α : Sort u} (c : Bool) (x y : α) : α := c.casesOn y x
structure Prod (α : Type u) (β : Type v) where
  fst : α
  snd : β
structure PProd (α : Sort u) (β : Sort v) where
  fst : α
  snd : β
structure MProd (α β : Type u) where
  fst : α
  snd : β
structure Subtype {α : Sort u} (p : α → Prop) where
  val : α
  property : p val
structure PLift (α : Sort u) : Type u where
  up ::
  down : α
structure ULift (α : Type v) : Type (max v u) where
  up ::
  down : α
structure PULift (α : Sort u) : Sort (max 1 u v) where
  up ::
  down : α
inductive Nat : Type where
  | zero : Nat
  | succ (n : Nat) : Nat
inductive List (α : Type u) where
  | nil
  | cons (head : α) (tail : List α)
inductive Char where
  | mk
inductive String where
  | mk
@[reducible] def optParam (α : Sort u) (default : α) : Sort u := α
@[reducible] def outParam (α : Sort u) : Sort u := α
@[reducible] def namedPattern {α : Sort u} (x a : α) (h : Eq x a) : α := a
class Inhabited (α : Sort u) where
  default : α
export Inhabited (default)
set_option checkBinderAnnotations false in
abbrev inferInstance {α : Sort u} [i : α] : α := i

/-! ## The axioms -/

axiom propext {a b : Prop} : Iff a b → Eq a b
axiom Classical.choice {α : Sort u} : Nonempty α → α
axiom sorryAx (α : Sort u) (synthetic := false) : α

/-! ## What can be decided -/

class inductive Decidable (p : Prop) where
  | isFalse (h : Not p) : Decidable p
  | isTrue (h : p) : Decidable p
@[inline_if_reduce, nospecialize] def Decidable.decide (p : Prop) [h : Decidable p] : Bool :=
  h.casesOn (fun _ => false) (fun _ => true)
export Decidable (isTrue isFalse decide)
abbrev DecidablePred {α : Sort u} (r : α → Prop) := (a : α) → Decidable (r a)
abbrev DecidableEq (α : Sort u) := (a b : α) → Decidable (Eq a b)
theorem Bool.ff_ne_tt (h : Eq false true) : False :=
  @Eq.ndrec Bool false (fun (b : Bool) => cond b False True) True.intro true h
theorem of_decide_eq_true {p : Prop} [inst : Decidable p] : Eq (decide p) true → p := fun e =>
  match (generalizing := true) inst, e with
  | isTrue h, _ => h
  | isFalse _, e => (Bool.ff_ne_tt e).elim
theorem of_decide_eq_false {p : Prop} [inst : Decidable p] : Eq (decide p) false → Not p := fun e =>
  match (generalizing := true) inst, e with
  | isTrue _, e => (Bool.ff_ne_tt e.symm).elim
  | isFalse h, _ => h
def ite {α : Sort u} (c : Prop) [h : Decidable c] (t e : α) : α := h.casesOn (fun _ => e) (fun _ => t)
def dite {α : Sort u} (c : Prop) [h : Decidable c] (t : c → α) (e : Not c → α) : α := h.casesOn e t
instance instDecidableTrue : Decidable True := isTrue True.intro
instance instDecidableFalse : Decidable False := isFalse (fun h => h)
instance instDecidableNot {p : Prop} [d : Decidable p] : Decidable (Not p) :=
  match d with
  | isTrue h => isFalse (fun k => k h)
  | isFalse h => isTrue h
instance instDecidableAnd {p q : Prop} [d : Decidable p] [e : Decidable q] : Decidable (And p q) :=
  match d, e with
  | isTrue h, isTrue k => isTrue (And.intro h k)
  | isFalse h, _ => isFalse (fun both => h both.left)
  | _, isFalse k => isFalse (fun both => k both.right)
instance instDecidableOr {p q : Prop} [d : Decidable p] [e : Decidable q] : Decidable (Or p q) :=
  match d, e with
  | isTrue h, _ => isTrue (Or.inl h)
  | _, isTrue k => isTrue (Or.inr k)
  | isFalse h, isFalse k => isFalse (fun one => one.rec h k)
instance instDecidableEqOfIff {p q : Prop} [d : Decidable p] [e : Decidable q] : Decidable (Iff p q) :=
  match d, e with
  | isTrue h, isTrue k => isTrue (Iff.intro (fun _ => k) (fun _ => h))
  | isFalse h, isFalse k => isTrue (Iff.intro (fun a => (h a).elim) (fun b => (k b).elim))
  | isTrue h, isFalse k => isFalse (fun i => k (i.mp h))
  | isFalse h, isTrue k => isFalse (fun i => h (i.mpr k))

/-! ## Signs -/

class OfNat (α : Type u) (_ : Nat) where
  ofNat : α
class HAdd (α : Type u) (β : Type v) (γ : outParam (Type w)) where
  hAdd : α → β → γ
class HSub (α : Type u) (β : Type v) (γ : outParam (Type w)) where
  hSub : α → β → γ
class HMul (α : Type u) (β : Type v) (γ : outParam (Type w)) where
  hMul : α → β → γ
class HPow (α : Type u) (β : Type v) (γ : outParam (Type w)) where
  hPow : α → β → γ
class Add (α : Type u) where
  add : α → α → α
class Sub (α : Type u) where
  sub : α → α → α
class Mul (α : Type u) where
  mul : α → α → α
instance instInhabitedNat : Inhabited Nat := ⟨Nat.zero⟩
class LE (α : Type u) where
  le : α → α → Prop
class LT (α : Type u) where
  lt : α → α → Prop
@[default_instance] instance instHAdd {α : Type u} [Add α] : HAdd α α α where
  hAdd a b := Add.add a b
@[default_instance] instance instHSub {α : Type u} [Sub α] : HSub α α α where
  hSub a b := Sub.sub a b
@[default_instance] instance instHMul {α : Type u} [Mul α] : HMul α α α where
  hMul a b := Mul.mul a b

/-! ## Numbers -/

@[default_instance 100] instance instOfNatNat (n : Nat) : OfNat Nat n where
  ofNat := n
set_option bootstrap.genMatcherCode false in
@[extern "lean_nat_add"] def Nat.add : Nat → Nat → Nat
  | n, .zero => n
  | n, .succ m => .succ (Nat.add n m)
instance instAddNat : Add Nat where
  add := Nat.add
attribute [match_pattern] Nat.add Add.add HAdd.hAdd
set_option bootstrap.genMatcherCode false in
@[extern "lean_nat_mul"] def Nat.mul : Nat → Nat → Nat
  | _, .zero => 0
  | n, .succ m => Nat.add (Nat.mul n m) n
instance instMulNat : Mul Nat where
  mul := Nat.mul
set_option bootstrap.genMatcherCode false in
@[extern "lean_nat_pred"] def Nat.pred : Nat → Nat
  | .zero => .zero
  | .succ n => n
set_option bootstrap.genMatcherCode false in
@[extern "lean_nat_sub"] def Nat.sub : Nat → Nat → Nat
  | n, .zero => n
  | n, .succ m => Nat.pred (Nat.sub n m)
instance instSubNat : Sub Nat where
  sub := Nat.sub
set_option bootstrap.genMatcherCode false in
@[extern "lean_nat_dec_eq"] def Nat.beq : Nat → Nat → Bool
  | .zero, .zero => true
  | .zero, .succ _ => false
  | .succ _, .zero => false
  | .succ n, .succ m => Nat.beq n m
@[extern "lean_nat_dec_le"] def Nat.ble : Nat → Nat → Bool
  | .zero, _ => true
  | .succ _, .zero => false
  | .succ n, .succ m => Nat.ble n m
theorem Nat.beq_refl : (n : Nat) → Eq (Nat.beq n n) true
  | .zero => rfl
  | .succ n => Nat.beq_refl n
theorem Nat.eq_of_beq_eq_true : (n m : Nat) → Eq (Nat.beq n m) true → Eq n m
  | .zero, .zero, _ => rfl
  | .zero, .succ _, h => (Bool.ff_ne_tt h).elim
  | .succ _, .zero, h => (Bool.ff_ne_tt h).elim
  | .succ n, .succ m, h => congrArg Nat.succ (Nat.eq_of_beq_eq_true n m h)
theorem Nat.ne_of_beq_eq_false {n m : Nat} (h : Eq (Nat.beq n m) false) : Not (Eq n m) := fun e =>
  Bool.ff_ne_tt (Eq.trans h.symm (Eq.subst (motive := fun (k : Nat) => Eq (Nat.beq n k) true) e (Nat.beq_refl n)))
@[extern "lean_nat_dec_eq"] def Nat.decEq (n m : Nat) : Decidable (Eq n m) :=
  match h : Nat.beq n m with
  | true => isTrue (Nat.eq_of_beq_eq_true n m h)
  | false => isFalse (Nat.ne_of_beq_eq_false h)
instance instDecidableEqNat : DecidableEq Nat := Nat.decEq
inductive Nat.le (n : Nat) : Nat → Prop where
  | refl : Nat.le n n
  | step {m} : Nat.le n m → Nat.le n (Nat.succ m)
instance instLENat : LE Nat where
  le := Nat.le
instance instLTNat : LT Nat where
  lt n m := Nat.le (Nat.succ n) m

/-! ## For `simp` and for proofs by compiled code -/

theorem of_eq_true {p : Prop} (h : Eq p True) : p := h.symm.rec True.intro
theorem eq_true {p : Prop} (h : p) : Eq p True := propext (Iff.intro (fun _ => True.intro) (fun _ => h))
theorem eq_self {α : Sort u} (a : α) : Eq (Eq a a) True := eq_true rfl
theorem Nat.add_zero (n : Nat) : Eq (HAdd.hAdd n 0) n := rfl
attribute [simp] eq_self Nat.add_zero
def Lean.reduceBool (b : Bool) : Bool := b
axiom Lean.trustCompiler : True
axiom Lean.ofReduceBool (a b : Bool) (h : Eq (Lean.reduceBool a) b) : Eq a b

/-! ## What syntax is made of, as far as the shared library asks for it -/

namespace Lean
inductive Name where
  | anonymous
  | str (pre : Name) (s : String)
  | num (pre : Name) (i : Nat)
abbrev Name.mkStr (p : Name) (s : String) : Name := Name.str p s
abbrev Name.mkNum (p : Name) (i : Nat) : Name := Name.num p i
abbrev Name.mkSimple (s : String) : Name := .str .anonymous s
abbrev Name.mkStr1 (a : String) : Name := .str .anonymous a
abbrev Name.mkStr2 (a b : String) : Name := .str (.str .anonymous a) b
abbrev Name.mkStr3 (a b c : String) : Name := .str (mkStr2 a b) c
abbrev Name.mkStr4 (a b c d : String) : Name := .str (mkStr3 a b c) d
inductive ParserDescr where
  | mk
abbrev TrailingParserDescr := ParserDescr
inductive Syntax where
  | missing
inductive MacroContext where
  | mk
inductive MacroState where
  | mk
inductive MacroResult where
  | mk
def Macro : Type := Syntax → MacroContext → MacroState → MacroResult
end Lean
