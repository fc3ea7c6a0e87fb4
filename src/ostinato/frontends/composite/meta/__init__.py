"""metacontroller: CompositeControllers and DecoratorControllers with hooks over HTTP."""
