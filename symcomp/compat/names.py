"""The public names of Theano 1.0, module by module, and older ones that programs still use.

``sources.py`` maps them to implementations. A name without one fails when it is used.
"""

#: Words in the names of tensor constructors: ``dmatrix``, ``ivectors``, ``tensor3``.
_WORDS = "scalar vector matrix row col tensor3 tensor4 tensor5 tensor6 tensor7".split()
_PLURALS = {"matrix": "matrices"}
CONSTRUCTORS = [
    *(prefix + word for word in _WORDS for prefix in ["", *"bwilfdcz"]),
    *(prefix + _PLURALS.get(word, word + "s") for word in _WORDS for prefix in ["", *"ilfd"]),
]

TENSOR = {
    "theano.tensor": (
        "ARange AdvancedBooleanIncSubtensor AdvancedBooleanIndexingError AdvancedBooleanSubtensor "
        "AdvancedIncSubtensor AdvancedIncSubtensor1 AdvancedIndexingError AdvancedSubtensor "
        "AdvancedSubtensor1 Alloc AllocDiag AllocEmpty Apply Argmax AsTensorError "
        "BaseAdvancedIncSubtensor BaseAdvancedSubtensor CAReduce Choose Constant Default DiffOp "
        "DimShuffle DisconnectedType Dot Elemwise EmptyConstantError ExtractDiag Eye Flatten "
        "Generic IncSubtensor Join LoadFromDisk Lop MPIRecv MPIRecvWait MPISend MPISendWait "
        "MakeSlice MaxAndArgmax Mean MethodNotDefined NoneConst NoneTypeT Nonzero "
        "NotScalarConstantError Op ParamsType PermuteRowElements Rebroadcast Reshape Rop "
        "ScalarFromTensor Shape ShapeError SliceConstant SliceType SpecifyShape Split Subtensor "
        "Sum Tensor TensorConstant TensorConstantSignature TensorFromScalar TensorType "
        "TensorVariable Tile Tri Type Variable abs_ add addbroadcast "
        "adv_index_broadcastable_pattern advanced_boolean_inc_subtensor "
        "advanced_boolean_set_subtensor advanced_boolean_subtensor advanced_inc_subtensor "
        "advanced_inc_subtensor1 advanced_set_subtensor advanced_set_subtensor1 "
        "advanced_subtensor advanced_subtensor1 all all_dtypes allclose alloc "
        "alloc_validate_shape and_ angle any arange arccos arccosh arcsin arcsinh arctan arctan2 "
        "arctanh argmax argmin argsort argtopk as_index_variable as_int_none_variable as_tensor "
        "as_tensor_variable bartlett batched_dot batched_tensordot bincount bitwise_and "
        "bitwise_not bitwise_or bitwise_xor cast ceil ceil_intdiv "
        "check_advanced_indexing_dimensions check_and_normalize_axes check_and_reject_bool "
        "check_equal_numpy chi2sf choose clip comm complex complex_dtypes complex_from_polar "
        "complex_types concatenate conj consider_constant constant constructor continuous_dtypes "
        "cos cosh cov cumprod cumsum default deg2rad diag diagonal discrete_dtypes div_proxy "
        "divmod dot eq erf erfc erfcinv erfcx erfinv exp exp2 expm1 extract_constant eye fill "
        "fill_diagonal fill_diagonal_offset flatnonzero flatten float_dtypes float_types floor "
        "floor_div gamma gammainc gammaincc gammal gammaln gammau ge get_canonical_form_slice "
        "get_idx_list get_scalar_constant_value get_vector_length grad grad_not_implemented "
        "grad_undefined gt hessian horizontal_stack i0 i1 identity_like imag inc_subtensor int32 "
        "int_div int_dtypes int_types integer_dtypes inv inverse_permutation invert irecv iround "
        "is_flat isclose isend isinf isinf_ isnan isnan_ iv j0 j1 jacobian join join_ jv largest "
        "le load log log10 log1p log2 lt make_constant make_slice max max_and_argmax maximum mean "
        "mgrid min min_informative_str minimum mod mod_check mul neg neq none_type_t nonzero "
        "nonzero_values numeric_grad numpy_diagonal_return_view numpy_scalar ogrid ones ones_like "
        "or_ outer patternbroadcast permute_row_elements pow power pprint prod psi ptp rad2deg "
        "ravel_multi_index real recv register_transfer repeat reshape roll round "
        "round_half_away_from_zero round_half_to_even scalar_from_tensor second send "
        "set_subtensor setdefault sgn shape shape_padaxis shape_padleft shape_padright sin sinh "
        "slicetype smallest sort specify_shape split sqr sqrt square squeeze stack stacklists std "
        "sub sum swapaxes switch take tan tanh tensor tensor_copy tensor_from_scalar tensordot "
        "tile topk topk_and_argtopk transfer transpose tri tri_gamma tril triu true_div trunc "
        "uint_dtypes unbroadcast unravel_index values_eq_approx_always_true var verify_grad "
        "vertical_stack where xor zeros zeros_like"
    ),
    "theano.tensor.elemwise": (
        "All Any Apply CAReduce CAReduceDtype COp DimShuffle DisconnectedType Elemwise "
        "MulWithoutZeros NullType Op OpenMPOp ParamsType Prod ProdWithoutZeros Sum TensorConstant "
        "TensorType TensorVariable as_tensor_variable mul_without_zeros"
    ),
    "theano.tensor.extra_ops": (
        "Bartlett CpuContiguous CumOp CumprodOp CumsumOp DiffOp DisconnectedType EnumList "
        "FillDiagonal FillDiagonalOffset Generic ParamsType RavelMultiIndex RepeatOp "
        "SearchsortedOp Unique UnravelIndex bartlett bartlett_ bincount compress cpu_contiguous "
        "cumprod cumsum diff fill_diagonal fill_diagonal_ fill_diagonal_offset "
        "fill_diagonal_offset_ ravel_multi_index repeat searchsorted squeeze tensor to_one_hot "
        "unravel_index"
    ),
    "theano.tensor.fft": "DisconnectedType IRFFTOp RFFTOp irfft irfft_op rfft rfft_op",
    "theano.tensor.fourier": "Fourier fft",
    "theano.tensor.inplace": (
        "abs__inplace add_inplace and__inplace arccos_inplace arccosh_inplace arcsin_inplace "
        "arcsinh_inplace arctan2_inplace arctan_inplace arctanh_inplace ceil_inplace "
        "chi2sf_inplace conj_inplace cos_inplace cosh_inplace deg2rad_inplace eq_inplace "
        "erf_inplace erfc_inplace erfcx_inplace exp2_inplace exp_inplace expm1_inplace "
        "fill_inplace floor_inplace gamma_inplace gammaln_inplace ge_inplace gt_inplace "
        "i0_inplace i1_inplace int_div_inplace inv_inplace invert_inplace iv_inplace j0_inplace "
        "j1_inplace jv_inplace le_inplace log10_inplace log1p_inplace log2_inplace log_inplace "
        "lt_inplace maximum_inplace minimum_inplace mod_inplace mul_inplace neg_inplace "
        "neq_inplace or__inplace pow_inplace psi_inplace rad2deg_inplace "
        "round_half_away_from_zero_inplace round_half_to_even_inplace second_inplace sgn_inplace "
        "sin_inplace sinh_inplace sqr_inplace sqrt_inplace sub_inplace tan_inplace tanh_inplace "
        "transpose_inplace tri_gamma_inplace true_div_inplace trunc_inplace xor_inplace"
    ),
    "theano.tensor.io": (
        "Constant Generic LoadFromDisk MPIRecv MPIRecvWait MPISend MPISendWait Op comm irecv "
        "isend load recv send"
    ),
    "theano.tensor.nlinalg": (
        "AllocDiag Apply Det DisconnectedType Eig Eigh EighGrad ExtractDiag MatrixInverse "
        "MatrixPinv Op QRFull QRIncomplete SVD TensorInv TensorSolve alloc_diag det diag eig eigh "
        "extract_diag lstsq matrix_dot matrix_inverse matrix_power norm pinv qr svd tensorinv "
        "tensorsolve trace"
    ),
    "theano.tensor.nnet": (
        "ConvOp CrossentropyCategorical1Hot CrossentropyCategorical1HotGrad "
        "CrossentropySoftmax1HotWithBiasDx CrossentropySoftmaxArgmax1HotWithBias LogSoftmax "
        "Prepend_scalar_constant_to_each_row Prepend_scalar_to_each_row Softmax SoftmaxGrad "
        "SoftmaxWithBias abstract_conv2d batch_normalization binary_crossentropy "
        "categorical_crossentropy confusion_matrix conv2d conv2d_grad_wrt_inputs conv2d_transpose "
        "conv3d crossentropy_categorical_1hot crossentropy_categorical_1hot_grad "
        "crossentropy_softmax_1hot crossentropy_softmax_1hot_with_bias "
        "crossentropy_softmax_1hot_with_bias_dx crossentropy_softmax_argmax_1hot_with_bias "
        "crossentropy_softmax_max_and_argmax_1hot "
        "crossentropy_softmax_max_and_argmax_1hot_with_bias elu h_softmax hard_sigmoid logsoftmax "
        "logsoftmax_op prepend_0_to_each_row prepend_1_to_each_row prepend_scalar_to_each_row "
        "relu scalar_sigmoid selu separable_conv2d sigmoid sigmoid_binary_crossentropy "
        "sigmoid_inplace softmax softmax_grad softmax_graph softmax_op softmax_with_bias softplus "
        "softsign ultra_fast_sigmoid"
    ),
    "theano.tensor.nnet.abstract_conv": (
        "AbstractConv AbstractConv2d AbstractConv2d_gradInputs AbstractConv2d_gradWeights "
        "AbstractConv3d AbstractConv3d_gradInputs AbstractConv3d_gradWeights "
        "AbstractConv_gradInputs AbstractConv_gradWeights Apply Assert BaseAbstractConv "
        "NotScalarConstantError Op assert_conv_shape assert_shape bilinear_kernel_1D "
        "bilinear_kernel_2D bilinear_upsampling border_mode_to_pad causal_conv1d "
        "check_conv_gradinputs_shape conv2d conv2d_grad_wrt_inputs conv2d_grad_wrt_weights conv3d "
        "conv3d_grad_wrt_inputs conv3d_grad_wrt_weights frac_bilinear_upsampling "
        "get_conv_gradinputs_shape get_conv_gradinputs_shape_1axis get_conv_gradweights_shape "
        "get_conv_gradweights_shape_1axis get_conv_output_shape get_conv_shape_1axis "
        "separable_conv2d separable_conv3d"
    ),
    "theano.tensor.nnet.blocksparse": (
        "Apply Op SparseBlockGemv SparseBlockOuter sparse_block_dot sparse_block_gemv "
        "sparse_block_gemv_inplace sparse_block_outer sparse_block_outer_inplace"
    ),
    "theano.tensor.nnet.bn": (
        "AbstractBatchNormInference AbstractBatchNormTrain AbstractBatchNormTrainGrad Apply "
        "BNComposite Composite Op TensorType batch_normalization batch_normalization_test "
        "batch_normalization_train"
    ),
    "theano.tensor.nnet.conv": (
        "Apply ConvOp NotScalarConstantError OpenMPOp conv2d gen_conv_code_unroll_batch_kern"
    ),
    "theano.tensor.nnet.conv3d2d": (
        "Apply DiagonalSubtensor DisconnectedType IncDiagonalSubtensor Op TopoOptimizer conv3d "
        "diagonal_subtensor get_diagonal_subtensor_view inc_diagonal_subtensor"
    ),
    "theano.tensor.nnet.corr": (
        "Apply BaseCorrMM CorrMM CorrMM_gradInputs CorrMM_gradWeights EnumList ParamsType "
        "TensorType"
    ),
    "theano.tensor.nnet.corr3d": (
        "Apply BaseCorr3dMM Corr3dMM Corr3dMM_gradInputs Corr3dMM_gradWeights EnumList ParamsType "
        "TensorType"
    ),
    "theano.tensor.nnet.ctc": (
        "ConnectionistTemporalClassification GCC_compiler ctc ctc_available ctc_present"
    ),
    "theano.tensor.nnet.neighbours": "Apply EnumList Images2Neibs Op images2neibs neibs2images",
    "theano.tensor.nnet.nnet": (
        "Apply CrossentropyCategorical1Hot CrossentropyCategorical1HotGrad "
        "CrossentropySoftmax1HotWithBiasDx CrossentropySoftmaxArgmax1HotWithBias DisconnectedType "
        "LogSoftmax Prepend_scalar_constant_to_each_row Prepend_scalar_to_each_row ScalarSoftsign "
        "Softmax SoftmaxGrad SoftmaxWithBias binary_crossentropy categorical_crossentropy "
        "confusion_matrix crossentropy_categorical_1hot crossentropy_categorical_1hot_grad "
        "crossentropy_softmax_1hot crossentropy_softmax_1hot_with_bias "
        "crossentropy_softmax_1hot_with_bias_dx crossentropy_softmax_argmax_1hot_with_bias "
        "crossentropy_softmax_max_and_argmax_1hot "
        "crossentropy_softmax_max_and_argmax_1hot_with_bias elu h_softmax logsoftmax "
        "logsoftmax_op prepend_0_to_each_row prepend_1_to_each_row prepend_scalar_to_each_row "
        "relu scalar_softsign selu sigmoid_binary_crossentropy softmax softmax_grad softmax_graph "
        "softmax_op softmax_with_bias softsign"
    ),
    "theano.tensor.nnet.sigm": (
        "NotScalarConstantError ScalarSigmoid ScalarSoftplus UltraFastScalarSigmoid compute_mul "
        "hard_sigmoid log1msigm_to_softplus log1p_neg_sigmoid log1pexp_to_softplus "
        "logsigm_to_softplus parse_mul_tree partition_num_or_denom perform_sigm_times_exp "
        "register_local_1msigmoid replace_leaf scalar_sigmoid scalar_softplus sigmoid "
        "sigmoid_inplace softplus ultra_fast_scalar_sigmoid ultra_fast_sigmoid "
        "ultra_fast_sigmoid_inplace"
    ),
    "theano.tensor.raw_random": (
        "RandomFunction RandomStateType RandomStreamsBase binomial choice choice_helper "
        "multinomial multinomial_helper normal permutation permutation_helper poisson "
        "random_integers random_integers_helper random_make_inplace random_state_type uniform"
    ),
    "theano.tensor.shared_randomstreams": (
        "RandomStateSharedVariable RandomStreams SharedVariable randomstate_constructor"
    ),
    "theano.tensor.sharedvar": (
        "ScalarSharedVariable SharedVariable TensorSharedVariable TensorType load_shared_variable "
        "scalar_constructor tensor_constructor"
    ),
    "theano.tensor.signal": "",
    "theano.tensor.signal.conv": "conv2d",
    "theano.tensor.signal.downsample": (
        "DownsampleFactorMax DownsampleFactorMaxGrad max_pool_2d max_pool_2d_same_size"
    ),
    "theano.tensor.signal.pool": (
        "Apply AveragePoolGrad DisconnectedType DownsampleFactorMaxGradGrad EnumList MaxPoolGrad "
        "MaxPoolRop OpenMPOp ParamsType Pool PoolGrad PoolingMode_t Variable max_pool_2d "
        "max_pool_2d_same_size pool_2d pool_3d"
    ),
    "theano.tensor.slinalg": (
        "Apply Cholesky CholeskyGrad Eigvalsh EigvalshGrad Expm ExpmGrad MATRIX_STRUCTURES Op "
        "Solve cholesky eigvalsh expm kron solve solve_lower_triangular solve_symmetric "
        "solve_upper_triangular"
    ),
    "theano.tensor.sort": "ArgSortOp SortOp TopKOp argsort argtopk sort topk topk_and_argtopk",
    "theano.tensor.subtensor": (
        "AdvancedBooleanIncSubtensor AdvancedBooleanIndexingError AdvancedBooleanSubtensor "
        "AdvancedIncSubtensor AdvancedIncSubtensor1 AdvancedIndexingError AdvancedSubtensor "
        "AdvancedSubtensor1 Apply BaseAdvancedIncSubtensor BaseAdvancedSubtensor DimShuffle "
        "DisconnectedType IncSubtensor MethodNotDefined NoneConst NoneTypeT "
        "NotScalarConstantError Op ParamsType SliceType Subtensor TensorType Type "
        "adv_index_broadcastable_pattern advanced_boolean_inc_subtensor "
        "advanced_boolean_set_subtensor advanced_boolean_subtensor advanced_inc_subtensor "
        "advanced_inc_subtensor1 advanced_set_subtensor advanced_set_subtensor1 "
        "advanced_subtensor advanced_subtensor1 as_index_variable "
        "check_advanced_indexing_dimensions check_and_reject_bool get_canonical_form_slice "
        "get_idx_list inc_subtensor make_constant set_subtensor take"
    ),
    "theano.tensor.type": (
        "TensorType Type Variable values_eq_approx values_eq_approx_always_true "
        "values_eq_approx_remove_inf values_eq_approx_remove_inf_nan values_eq_approx_remove_nan"
    ),
    "theano.tensor.type_other": (
        "Apply Constant DisconnectedType Generic MakeSlice NoneConst NoneTypeT Op SliceConstant "
        "SliceType Type as_int_none_variable make_slice none_type_t slicetype"
    ),
    "theano.tensor.utils": "shape_of_variables",
    "theano.tensor.var": (
        "AsTensorError ComplexError Constant IntegerDivisionError PY3 TensorConstant "
        "TensorConstantSignature TensorType TensorVariable Variable equal_slices"
    ),
    "theano.tensor.xlogx": "Elemwise XlogX XlogY0 scalar_xlogx scalar_xlogy0 xlogx xlogy0",
}

OTHERS = {
    "theano": (
        "Apply CLinker Constant Container DualLinker FunctionGraph FunctionMaker Generic In "
        "InconsistencyError Linker LocalLinker Lop Mode Op OpFromGraph OpWiseCLinker OpenMPOp "
        "OrderedUpdates Out Param PerformLinker ProfileStats Rop SymbolicInput SymbolicOutput "
        "Type Variable as_op change_flags clone dot foldl foldr function function_dump generic "
        "get_scalar_constant_value grad map object2 pp pprint predefined_linkers predefined_modes "
        "predefined_optimizers reduce scan scan_checkpoints shared sparse_grad subgraph_grad"
    ),
    "theano.compat": (
        "DefaultOrderedDict cmp decode decode_iter decode_with exc_message get_unbound_function "
        "ifilter maybe_add_to_os_environ_pathlist"
    ),
    "theano.compile": (
        "AddDestroyHandler AddFeatureOptimizer AliasedMemoryError DUPLICATE DebugMode DeepCopyOp "
        "DisconnectedType FAST_COMPILE FAST_RUN FromFunctionOp Function FunctionMaker In Mode "
        "MonitorMode NODEFAULT NullType OPT_FAST_COMPILE OPT_FAST_RUN OPT_FAST_RUN_STABLE "
        "OPT_MERGE OPT_NONE OPT_O2 OPT_O3 OPT_STABILIZE OPT_UNSAFE OpFromGraph Out Param "
        "PrintCurrentFunctionGraph ProfileStats Rebroadcast ScanProfileStats Shape Shape_i "
        "SharedVariable SpecifyShape SymbolicInput SymbolicOutput UnusedInputError Variable "
        "ViewOp alias_root as_op check_equal convert_function_input deep_copy_op exclude "
        "fgraph_updated_vars function function_dump get_default_mode get_info_on_inputs get_mode "
        "graph infer_reuse_pattern inline_ofg_expansion insert_deepcopy instantiated_default_mode "
        "io_connection_pattern is_same_graph ops_with_inner_function optdb orig_function pfunc "
        "predefined_linkers predefined_modes predefined_optimizers rebuild_collect_shared "
        "register_checker register_linker register_mode register_optimizer shape shared "
        "shared_constructor specify_shape std_fgraph view_op view_tree_set"
    ),
    "theano.compile.builders": (
        "DisconnectedType NullType OpFromGraph SharedVariable Variable inline_ofg_expansion "
        "ops_with_inner_function"
    ),
    "theano.compile.debugmode": (
        "BadDestroyMap BadOptimization BadThunkOutput BadViewMap DataDestroyed DebugMode "
        "DebugModeError Function FunctionMaker InvalidValueError Mode NoDuplicateOptWarningFilter "
        "OutputGuard StochasticOrder char_from_number check_eq data_destroyed debugprint "
        "default_make_thunk"
    ),
    "theano.compile.function": "function function_dump",
    "theano.compile.function_module": (
        "AliasedMemoryError DUPLICATE Function FunctionMaker In NODEFAULT SymbolicInput "
        "SymbolicOutput UnusedInputError alias_root check_equal convert_function_input "
        "fgraph_updated_vars get_info_on_inputs infer_reuse_pattern insert_deepcopy orig_function "
        "register_checker std_fgraph view_tree_set"
    ),
    "theano.compile.io": "In Out SharedVariable SymbolicInput SymbolicOutput",
    "theano.compile.mode": (
        "AddDestroyHandler AddFeatureOptimizer FAST_COMPILE FAST_RUN Mode OPT_FAST_COMPILE "
        "OPT_FAST_RUN OPT_FAST_RUN_STABLE OPT_MERGE OPT_NONE OPT_O2 OPT_O3 OPT_STABILIZE "
        "OPT_UNSAFE PrintCurrentFunctionGraph exclude get_default_mode get_mode "
        "instantiated_default_mode optdb predefined_linkers predefined_modes "
        "predefined_optimizers register_linker register_mode register_optimizer"
    ),
    "theano.compile.monitormode": "Mode MonitorMode detect_nan",
    "theano.compile.nanguardmode": (
        "GpuArrayType Mode NanGuardMode ValuesView contains_inf contains_nan"
    ),
    "theano.compile.ops": (
        "DeepCopyOp FromFunctionOp OutputGuard Rebroadcast Shape Shape_i SpecifyShape ViewOp "
        "as_op deep_copy_op load_back shape shape_i shape_i_op specify_shape view_op"
    ),
    "theano.compile.pfunc": (
        "Constant In Out Param ProfileStats SharedVariable UnusedInputError Variable "
        "iter_over_pairs pfunc rebuild_collect_shared"
    ),
    "theano.compile.profiling": (
        "ProfileStats ScanProfileStats print_global_stats register_profiler_printer "
        "total_fct_exec_time total_graph_opt_time total_time_linker"
    ),
    "theano.compile.sharedvalue": (
        "Container SharedVariable Variable generic_constructor shared shared_constructor"
    ),
    "theano.configparser": (
        "AddConfigVar BoolParam ConfigParam ConfigParser EnumStr FloatParam IntParam StrParam "
        "THEANO_FLAGS THEANO_FLAGS_DICT TheanoConfigParser TheanoConfigWarning TypedParam "
        "change_flags config_files config_files_from_theanorc fetch_val_for_key get_config_hash "
        "parse_config_string"
    ),
    "theano.gof": (
        "Apply Bookkeeper CEnumType CLinker COp CachedConstantError CheckStackTraceOptimization "
        "Constant Container DB DestroyHandler DualLinker EnumList EnumType EquilibriumDB "
        "EquilibriumOptimizer FunctionGraph Generic HideC History InconsistencyError Linker "
        "LocalGroupDB LocalLinker LocalOptGroup LocalOptimizer MergeOptimizer MethodNotDefined "
        "MissingInputError NavigatorOptimizer NoOutputFromInplace NodeFinder Op OpKeyOptimizer "
        "OpRemove OpSub OpWiseCLinker OpenMPOp Optimizer Params ParamsType PatternSub "
        "PerformLinker PrintListener ProxyDB PureOp Query ReplaceValidate "
        "ReplacementDidntRemovedError SeqOptimizer SequenceDB TopoOptimizer Type Validator "
        "Variable WrapLinker WrapLinkerMany generic inplace_optimizer object2 "
        "ops_with_inner_function optimizer view_roots"
    ),
    "theano.gof.fg": (
        "CachedConstantError FunctionGraph InconsistencyError MissingInputError NullType OrderedSet"
    ),
    "theano.gof.graph": (
        "Apply Constant NoParams Node OrderedSet Variable ancestors as_string clone "
        "clone_get_equiv equal_computations general_toposort inputs io_connection_pattern "
        "io_toposort is_in_ancestors is_same_graph is_same_graph_with_merge list_of_nodes "
        "nodes_constructed op_as_string ops orphans stack_search variables variables_and_orphans "
        "view_roots"
    ),
    "theano.gof.null_type": "NullType Type null_type",
    "theano.gof.op": (
        "CLinkerObject CLinkerOp COp FunctionGraph GCC_compiler Op OpenMPOp PureOp apply_meth "
        "debug_assert debug_error_message get_debug_values get_test_value missing_test_message "
        "ops_with_inner_function simple_meth"
    ),
    "theano.gof.params_type": "EnumType MethodNotDefined Params ParamsType Type",
    "theano.gof.type": (
        "CDataType CDataTypeConstant CEnumType CLinkerObject CLinkerType EnumList EnumType "
        "Generic MethodNotDefined Op PureType SingletonType Type generic"
    ),
    "theano.gof.utils": (
        "ABORT ANY_TYPE FAILURE FALL_THROUGH Keyword MetaObject MethodNotDefined PY3 RETRY "
        "add_tag_trace c_cpp_keywords comm_guard deprecated difference flatten from_return_values "
        "get_variable_trace_string give_variables_names hist memoize object2 scratchpad "
        "simple_extract_stack to_return_values toposort type_guard undef uniq unique"
    ),
    "theano.gradient": (
        "ConsiderConstant DebugMode DisconnectedGrad DisconnectedInputError DisconnectedType "
        "FAST_RUN GradClip GradScale GradientError Lop NullType NullTypeGradError Rop "
        "UndefinedGrad Variable ViewOp ZeroGrad consider_constant consider_constant_ "
        "disconnected_grad disconnected_grad_ disconnected_type format_as grad grad_clip "
        "grad_not_implemented grad_scale grad_time grad_undefined hessian jacobian mode_not_slow "
        "numeric_grad subgraph_grad tensor undefined_grad undefined_grad_ verify_grad zero_grad "
        "zero_grad_"
    ),
    "theano.ifelse": "Apply CondMerge IfElse Op TensorType ifelse",
    "theano.misc.cpucount": "cpuCount",
    "theano.misc.frozendict": "FrozenOrderedDict Mapping frozendict",
    "theano.misc.may_share_memory": "SparseType TensorType may_share_memory",
    "theano.misc.ordered_set": "Link OrderedSet check_deterministic",
    "theano.misc.pkl_utils": (
        "CompatUnpickler DEFAULT_PROTOCOL PY3 PersistentGpuArrayID PersistentNdarrayID "
        "PersistentNdarrayLoad PersistentSharedVariableID Pickler SharedVariable StripPickler "
        "dump load load_reduce min_recursion pickle zipadd"
    ),
    "theano.misc.safe_asarray": "",
    "theano.misc.strutil": "pretty_format render_string strip_leading_white_space",
    "theano.printing": (
        "Apply Function Op Print PrinterState SharedVariable debugprint default_printer "
        "leaf_printer min_informative_str pp pprint pydotprint var_descriptor"
    ),
    "theano.raise_op": "Raise",
    "theano.sandbox.linalg": (
        "alloc_diag cholesky det diag eig eigh eigvalsh extract_diag matrix_inverse psd solve "
        "spectral_radius_bound trace"
    ),
    "theano.sandbox.rng_mrg": (
        "Apply DotModulo MRG_RandomStreams Op ParamsType TensorType Variable guess_n_streams "
        "matVecModM mrg_next_value mrg_random_make_inplace mrg_uniform mrg_uniform_base "
        "multMatVect"
    ),
    "theano.sandbox.softsign": "softsign",
    "theano.scalar": (
        "AND Abs Add Angle Apply ArcCos ArcCosh ArcSin ArcSinh ArcTan ArcTan2 ArcTanh BinaryBitOp "
        "BinaryScalarOp Cast Ceil Chi2SF Clip Complex ComplexError ComplexFromPolar Composite "
        "Compositef32 Conj Constant Cos Cosh Deg2Rad DisconnectedType EQ Erf Erfc Erfcinv Erfcx "
        "Erfinv Exp Exp2 Expm1 FixedLogicalComparison Floor FunctionGraph GE GT Gamma GammaInc "
        "GammaIncC GammaL GammaLn GammaU I0 I1 Identity Imag InRange IntDiv IntegerDivisionError "
        "Inv Invert IsInf IsNan Iv J0 J1 Jv LE LT Log Log10 Log1p Log2 LogicalComparison Maximum "
        "Minimum Mod Mul NEQ Neg NumpyAutocaster OR Op Pow Psi Rad2Deg Real RoundHalfAwayFromZero "
        "RoundHalfToEven Scalar ScalarConstant ScalarOp ScalarVariable Second Sgn Sin Sinh Sqr "
        "Sqrt Sub Switch Tan Tanh TriGamma TrueDiv Trunc Type UnaryBitOp UnaryScalarOp Variable "
        "XOR abs_ add and_ angle arccos arccosh arcsin arcsinh arctan arctan2 arctanh "
        "as_common_dtype as_scalar autocast_float autocast_float_as autocast_int bool cast ceil "
        "chi2sf clip complex complex128 complex64 complex_from_polar complex_types complexs "
        "complexs128 complexs64 composite_f32 conj constant continuous_types convert "
        "convert_to_bool convert_to_complex128 convert_to_complex64 convert_to_float16 "
        "convert_to_float32 convert_to_float64 convert_to_int16 convert_to_int32 convert_to_int64 "
        "convert_to_int8 convert_to_uint16 convert_to_uint32 convert_to_uint64 convert_to_uint8 "
        "cos cosh deg2rad discrete_types div_proxy eq erf erfc erfcinv erfcx erfinv exp exp2 "
        "expm1 float16 float32 float64 float_out float_out_nocomplex float_types floats floor "
        "floor_div gamma gammainc gammaincc gammal gammaln gammau ge grad_not_implemented "
        "grad_undefined gt handle_cast handle_composite i0 i1 identity imag inclosedrange "
        "inopenrange int16 int32 int64 int8 int_div int_or_true_div int_out int_out_nocomplex "
        "int_types integer_types ints inv invert isinf isnan iv j0 j1 jv le log log10 log1p log2 "
        "lt maximum minimum mod mod_check mul neg neq or_ pow pprint psi rad2deg real real_out "
        "round_half_away_from_zero round_half_to_even same_out same_out_float_only same_out_min8 "
        "same_out_nobool same_out_nocomplex second sgn sin sinh specific_out sqr sqrt sub switch "
        "tan tanh tri_gamma true_div trunc uint16 uint32 uint64 uint8 uint_types unary_out_lookup "
        "upcast upcast_out upcast_out_min8 upcast_out_no_complex upcast_out_nobool "
        "upgrade_to_float upgrade_to_float64 upgrade_to_float_no_complex xor"
    ),
    "theano.scalar.basic_scipy": (
        "BinaryScalarOp Chi2SF Erf Erfc Erfcinv Erfcx Erfinv Gamma GammaInc GammaIncC GammaL "
        "GammaLn GammaU I0 I1 Iv J0 J1 Jv Psi TriGamma UnaryScalarOp chi2sf erf erfc erfcinv "
        "erfcx erfinv gamma gammainc gammaincc gammal gammaln gammau i0 i1 iv j0 j1 jv psi "
        "tri_gamma"
    ),
    "theano.scalar.sharedvar": "Scalar ScalarSharedVariable SharedVariable shared",
    "theano.scan_module": "clone foldl foldr map reduce scan scan_checkpoints until",
    "theano.scan_module.scan": "OrderedUpdates SharedVariable scan",
    "theano.scan_module.scan_checkpoints": "Join scan_checkpoints",
    "theano.scan_module.scan_utils": (
        "DEPRECATED_ARG Validator clone compress_outs equal_computations expand_empty "
        "forced_replace get_updates_and_outputs hash_listsDictsTuples infer_shape "
        "isNaN_or_Inf_or_None map_variables reconstruct_graph safe_new scan_args "
        "scan_can_remove_outs traverse until"
    ),
    "theano.scan_module.scan_views": "foldl foldr map reduce",
    "theano.sparse": (
        "AddSD AddSS AddSSData CSC CSM CSMGrad CSMProperties CSR Cast ColScaleCSC "
        "ConstructSparseFromList DenseFromSparse Diag DisconnectedType Dot EnsureSortedIndices "
        "EqualSD EqualSS GetItem2Lists GetItem2ListsGrad GetItem2d GetItemList GetItemListGrad "
        "GetItemScalar GreaterEqualSD GreaterEqualSS GreaterThanSD GreaterThanSS HStack "
        "LessEqualSD LessEqualSS LessThanSD LessThanSS MulSD MulSS MulSV Neg NotEqualSD "
        "NotEqualSS Remove0 RowScaleCSC SamplingDot SpSum SparseConstant SparseConstantSignature "
        "SparseFromDense SparseType SparseVariable SquareDiagonal StructuredAddSV StructuredDot "
        "StructuredDotGradCSC StructuredDotGradCSR Transpose TrueDot Usmm VStack add add_s_d "
        "add_s_s add_s_s_data all_dtypes arcsin arcsinh arctan arctanh as_sparse "
        "as_sparse_or_tensor_variable as_sparse_variable bcast bsr_dmatrix bsr_fmatrix bsr_matrix "
        "cast ccast ceil clean col_scale complex_dtypes conj constant construct_sparse_from_list "
        "continuous_dtypes csc_dmatrix csc_fmatrix csc_from_dense csc_matrix csm_data csm_grad "
        "csm_indices csm_indptr csm_properties csm_shape csr_dmatrix csr_fmatrix csr_from_dense "
        "csr_matrix dcast deg2rad dense_from_sparse diag discrete_dtypes dot enable_sparse "
        "ensure_sorted_indices eq equal_s_d equal_s_s expm1 fcast float_dtypes floor ge "
        "get_item_2d get_item_2lists get_item_2lists_grad get_item_list get_item_list_grad "
        "get_item_scalar grad_not_implemented grad_undefined greater_equal_s_d greater_equal_s_s "
        "greater_than_s_d greater_than_s_s gt hstack icast int_dtypes integer_dtypes lcast le "
        "less_equal_s_d less_equal_s_s less_than_s_d less_than_s_s log1p lt matrix mul mul_s_d "
        "mul_s_s mul_s_v neg neq not_equal_s_d not_equal_s_s rad2deg remove0 rint row_scale "
        "sampling_dot scalar sdg_csc sdg_csr sgn shared sin sinh sp_ones_like sp_sum "
        "sp_zeros_like sparse_formats sqr sqrt square_diagonal structured_add structured_add_s_v "
        "structured_dot structured_dot_grad structured_exp structured_log structured_maximum "
        "structured_minimum structured_monoid structured_pow structured_sigmoid sub tan tanh "
        "tensor transpose true_dot trunc uint_dtypes usmm vstack wcast zcast"
    ),
    "theano.sparse.sharedvar": (
        "SharedVariable SparseTensorSharedVariable SparseType sparse_constructor"
    ),
    "theano.sparse.type": "SparseType",
    "theano.sparse.utils": "",
    "theano.typed_list": (
        "Append Apply Constant Count Extend GetItem Index Insert Length MakeList Op Remove "
        "Reverse SliceType TypedListConstant TypedListType TypedListVariable Variable append "
        "count extend getitem index_ insert length make_list reverse"
    ),
    "theano.typed_list.basic": (
        "Append Apply Constant Count Extend GetItem Index Insert Length MakeList Op Remove "
        "Reverse SliceType TypedListConstant TypedListType TypedListVariable Variable append "
        "count extend getitem index_ insert length make_list reverse"
    ),
    "theano.typed_list.type": "TypedListType",
    "theano.updates": "OrderedUpdates SharedVariable",
    "theano.version": (
        "FALLBACK_VERSION full_version git_revision info release short_version version"
    ),
}
#: Modules with the same names as another.
SAME = {
    "theano.tensor.basic": "theano.tensor",
    "theano.scalar.basic": "theano.scalar",
    "theano.sparse.basic": "theano.sparse",
}

#: Modules of devices, of generated code and of rewriting that have no counterpart: every name in
#: them fails when it is used.
OPEN = (
    "theano.compile.debug theano.compile.profilemode theano.d3viz theano.d3viz.d3viz "
    "theano.d3viz.formatting theano.gof.callcache theano.gof.cc theano.gof.cmodule "
    "theano.gof.compiledir theano.gof.compilelock theano.gof.cutils theano.gof.destroyhandler "
    "theano.gof.lazylinker_c theano.gof.link theano.gof.opt theano.gof.optdb theano.gof.sched "
    "theano.gof.toolbox theano.gof.unify theano.gof.vm theano.gpuarray "
    "theano.gpuarray.basic_ops theano.gpuarray.blas theano.gpuarray.blocksparse "
    "theano.gpuarray.ctc theano.gpuarray.cudnn_defs theano.gpuarray.dnn "
    "theano.gpuarray.elemwise theano.gpuarray.extra_ops theano.gpuarray.fft "
    "theano.gpuarray.fp16_help theano.gpuarray.kernel_codegen theano.gpuarray.linalg "
    "theano.gpuarray.multinomial theano.gpuarray.neighbours theano.gpuarray.nerv "
    "theano.gpuarray.nnet theano.gpuarray.opt theano.gpuarray.opt_util theano.gpuarray.pool "
    "theano.gpuarray.reduction theano.gpuarray.rng_mrg theano.gpuarray.sort "
    "theano.gpuarray.subtensor theano.gpuarray.type theano.misc.check_blas "
    "theano.misc.doubleop theano.sandbox.blocksparse theano.sandbox.conv theano.sandbox.cuda "
    "theano.sandbox.cuda.basic_ops theano.sandbox.cuda.blas theano.sandbox.cuda.blocksparse "
    "theano.sandbox.cuda.cula theano.sandbox.cuda.dnn theano.sandbox.cuda.elemwise "
    "theano.sandbox.cuda.fftconv theano.sandbox.cuda.kernel_codegen_helpers "
    "theano.sandbox.cuda.neighbours theano.sandbox.cuda.nnet theano.sandbox.cuda.opt "
    "theano.sandbox.cuda.opt_util theano.sandbox.cuda.rng_curand theano.sandbox.cuda.type "
    "theano.sandbox.cuda.var theano.sandbox.debug theano.sandbox.fourier "
    "theano.sandbox.gpuarray theano.sandbox.linalg.ops theano.sandbox.minimal "
    "theano.sandbox.multinomial theano.sandbox.neighbours theano.sandbox.scan "
    "theano.sandbox.solve theano.sandbox.symbolic_module theano.sandbox.theano_object "
    "theano.scan_module.scan_op theano.scan_module.scan_opt "
    "theano.scan_module.scan_perform_ext theano.sparse.opt theano.sparse.sandbox "
    "theano.sparse.sandbox.sp theano.sparse.sandbox.sp2 theano.sparse.sandbox.truedot "
    "theano.tensor.blas theano.tensor.blas_c theano.tensor.blas_headers "
    "theano.tensor.blas_scipy theano.tensor.elemwise_cgen theano.tensor.inc_code "
    "theano.tensor.nnet.Conv3D theano.tensor.nnet.ConvGrad3D theano.tensor.nnet.ConvTransp3D "
    "theano.tensor.nnet.opt theano.tensor.opt theano.tensor.opt_uncanonicalize "
    "theano.typed_list.opt "
)
