import type { FieldTable } from './field-table.ts'
import { serverFields } from './server-fields.ts'

/** OpenAI's Responses. */
export const responseFields: FieldTable = {
  fields: [
    {
      class: 'refused',
      feature: 'stored_prompts',
      names: ['prompt'],
      reason: "a prompt of the operator's account, of unknown size",
    },
    {
      class: 'known',
      reason: 'documented',
      names: [
        'model',
        'input',
        'instructions',
        'max_output_tokens',
        'max_tool_calls',
        'temperature',
        'top_p',
        'top_logprobs',
        'stream',
        'stream_options',
        'store',
        'include',
        'tools',
        'tool_choice',
        'parallel_tool_calls',
        'reasoning',
        'text',
        'truncation',
        'context_management',
        'image',
        'moderation',
        'metadata',
        'user',
        'safety_identifier',
        'prompt_cache_key',
        'prompt_cache_options',
        'prompt_cache_retention',
        'previous_response_id',
        'conversation',
        'background',
        'flagged_categories',
      ],
    },
    { class: 'known', names: ['client_metadata'], reason: 'sent by coding agents' },
    ...serverFields,
  ],
  hasCacheTtl: false,
}
