import { objectOf } from '#formats/json-values.ts'

import type { Row } from './field-table.ts'

/** The sampling fields of open servers, such as vLLM, SGLang and llama.cpp. */
const sampling: Row = {
  class: 'known',
  reason: 'sampling of open servers',
  names: [
    'top_k',
    'min_p',
    'top_a',
    'top_n_sigma',
    'typical_p',
    'tfs_z',
    'repetition_penalty',
    'repeat_penalty',
    'repeat_last_n',
    'presence_penalty',
    'frequency_penalty',
    'length_penalty',
    'dry_multiplier',
    'dry_base',
    'dry_allowed_length',
    'dry_penalty_last_n',
    'dry_sequence_breakers',
    'xtc_probability',
    'xtc_threshold',
    'mirostat',
    'mirostat_tau',
    'mirostat_eta',
    'dynatemp_range',
    'dynatemp_exponent',
    'seed',
    'stop_token_ids',
    'bad_words',
    'allowed_token_ids',
    'ignore_eos',
    'include_stop_str_in_output',
    'skip_special_tokens',
    'spaces_between_special_tokens',
    'guided_json',
    'guided_choice',
    'structured_outputs',
    'json_schema',
    'chat_template_kwargs',
    'include_reasoning',
    'separate_reasoning',
    'reasoning_format',
    'enable_thinking',
    'parse_tool_calls',
    'cache_prompt',
  ],
}

/** Fields that servers and aggregators understand in every format. */
export const sharedFields: readonly Row[] = [
  { class: 'dropped', names: ['service_tier', 'speed', 'inference_geo'], reason: 'another price' },
  {
    class: 'dropped',
    names: ['prediction'],
    reason: 'its rejected tokens are charged beyond the output limit',
  },
  {
    class: 'dropped',
    names: [
      'n_predict',
      'num_predict',
      'max_new_tokens',
      'min_tokens',
      'min_new_tokens',
      'best_of',
      'n_cmpl',
      'use_beam_search',
      'options',
    ],
    reason: 'more output than the call reserves',
  },
  {
    class: 'dropped',
    names: [
      'models',
      'route',
      'fallbacks',
      'fallback_credit_token',
      'preset',
      'provider',
      'lora',
      'lora_path',
      'lora_request',
    ],
    reason: 'another model or provider than the one that is charged',
  },
  {
    class: 'dropped',
    names: ['plugins', 'transforms'],
    reason: 'services with prices of their own',
  },
  {
    class: 'dropped',
    names: ['user_profile_id', 'workspace_id', 'access_programs'],
    reason: "objects of the operator's account",
  },
  {
    class: 'dropped',
    names: [
      'extra_body',
      'chat_template',
      'custom_logit_processor',
      'custom_params',
      'logits_processors',
      'priority',
      'id_slot',
      'prompt_logprobs',
      'kv_transfer_params',
      'vllm_xargs',
      'mm_processor_kwargs',
      'session_params',
      'data_parallel_rank',
      'bootstrap_host',
      'bootstrap_port',
      'bootstrap_room',
      'return_hidden_states',
    ],
    reason: 'configures the server',
  },
  {
    class: 'dropped',
    names: [
      'guided_regex',
      'guided_grammar',
      'grammar',
      'regex',
      'ebnf',
      'structured_outputs.regex',
      'structured_outputs.grammar',
      'structured_outputs.structural_tag',
    ],
    reason: 'a pattern can keep the server busy for minutes',
  },
  sampling,
]

/** A shell of the provider, unless the caller runs it. */
const isHostedShell = (tool: unknown) => {
  const { environment } = objectOf(tool)
  return environment !== undefined && objectOf(environment)['type'] !== 'local'
}

/** Tools that the provider runs. All others pass: the caller runs them, or they are free. */
export const sharedTools: readonly Row[] = [
  { class: 'refused', feature: 'web_search', names: ['web_search'], reason: 'charged by search' },
  { class: 'refused', feature: 'web_fetch', names: ['web_fetch'], reason: 'adds unseen input' },
  {
    class: 'refused',
    feature: 'code_execution',
    names: ['code_execution', 'code_interpreter', 'programmatic_tool_calling'],
    reason: 'charged by container and hour',
  },
  {
    class: 'refused',
    feature: 'image_generation',
    names: ['image_generation'],
    reason: 'charged by image',
  },
  { class: 'refused', feature: 'file_search', names: ['file_search'], reason: 'charged by call' },
  {
    class: 'refused',
    feature: 'computer_use',
    names: ['computer', 'computer_use_preview', 'browser_toolset'],
    reason: 'only for callers that the operator trusts with a computer',
  },
  { class: 'refused', feature: 'mcp', names: ['mcp'], reason: 'connects to other servers' },
  { class: 'refused', feature: 'advisor', names: ['advisor'], reason: 'calls another model' },
  {
    class: 'refused',
    feature: 'containers',
    names: ['shell'],
    reason: 'charged by container, unless the caller runs it',
    asks: isHostedShell,
  },
]
