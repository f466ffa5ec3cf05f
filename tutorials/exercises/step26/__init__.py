from mynode.hooks import FunctionHook
