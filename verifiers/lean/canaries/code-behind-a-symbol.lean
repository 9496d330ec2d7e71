local notation "|--" x => x
def y := |-- 1 set_option debug.skipKernelTC true