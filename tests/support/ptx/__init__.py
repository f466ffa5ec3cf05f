"""A machine that runs CUDA kernels without a GPU: PTX, executed in NumPy.

PTX is the text that CUDA's compiler NVRTC writes, the assembly language of NVIDIA's GPUs. NVRTC
needs no GPU and no driver. So the kernels of ``tinynode_cupy`` can be compiled and executed on any
machine, and compared with the portable functions.

    reader.py        the text becomes functions, basic blocks, instructions
    arithmetic.py    the instructions that compute
    memory.py        one flat memory that knows which bytes may be read and written
    machine.py       the threads of a launch, as lanes of NumPy arrays
    cupy_kernels.py  CuPy's kernel classes: CuPy's source, NVRTC, and a launch on the machine

The machine shows that the text of a kernel is right: indices, strides, the last threads, dtypes.
It does not show launches by a driver, streams, the order of memory between threads, or speed.
"""
