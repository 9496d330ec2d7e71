notation "type_of%" x => True
notation "@" x => True.intro
theorem target : True := True.intro