"""Some of ONNX's own node tests, a few of each kind of operator."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx")
pytest.importorskip("ml_dtypes")

from tests.suites.onnx_nodes import run_case

PASSED = (
    *("add", "div_int32_trunc", "mod_mixed_sign_int32", "mod_mixed_sign_float32", "pow"),
    *("bitshift_right_int32_negative_shift", "isinf_negative", "isnan", "clip_default_int8_min"),
    *("cast_FLOAT_to_BFLOAT16", "where_example", "max_example", "softplus", "mish", "celu"),
    *(
        "prelu_broadcast",
        "reduce_max_bool_inputs",
        "reduce_l2_empty_set",
        "argmax_default_axis_example_select_last_index",
        "reshape_allowzero_reordered",
        "slice_neg_steps",
        "tile",
    ),
    *("reflect_pad", "spacetodepth_crd_mode_example", "gemm_all_attributes", "convtranspose_pads"),
    *("averagepool_2d_ceil", "maxpool_with_argmax_2d_precomputed_strides", "lrn"),
    *("layer_normalization_2d_axis0", "rms_normalization_2d_axis0", "gather_negative_indices"),
    *("scatter_elements_with_negative_indices", "onehot_negative_indices", "top_k"),
    *("cumsum_1d_reverse_exclusive", "qlinearconv", "quantizelinear_axis", "scan9_sum", "if"),
    *("resize_downsample_scales_linear_antialias", "resize_tf_crop_and_resize"),
    *("attention_4d", "attention_23_fullymasked_qk_matmul_output_mode3_zero"),
    *("col2im_dilations", "dft_axis", "dft_rfft", "dft_irfft", "stft_with_window"),
    *("mod_float_edge_cases_fmod_0_float32", "tensorscatter_circular", "gridsample_bicubic"),
    *("einsum_batch_matmul", "sce_mean_weight", "simple_rnn_with_initial_bias", "gru_defaults"),
)
REFUSED = ("bernoulli", "nonzero_example", "batchnorm_example_training_mode")


def verdict(name: str) -> str:
    outcome = run_case(f"test_{name}")
    assert "\n" not in outcome.detail
    return f"{outcome.verdict} {outcome.detail}"


@pytest.mark.parametrize("name", PASSED)
def test_results_are_the_expected_ones(name: str) -> None:
    assert verdict(name) == "passed "


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_imported_is_named(name: str) -> None:
    assert verdict(name).startswith("refused operator ")
