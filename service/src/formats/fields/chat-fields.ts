import { listOf } from '#formats/json-values.ts'

import type { FieldTable } from './field-table.ts'
import { serverFields } from './server-fields.ts'

const asksFor = (modality: string) => (modalities: unknown) => listOf(modalities).includes(modality)

/** OpenAI's Chat Completions. */
export const chatFields: FieldTable = {
  fields: [
    {
      class: 'refused',
      feature: 'audio_output',
      names: ['modalities'],
      reason: 'charged by another price than text',
      asks: asksFor('audio'),
    },
    {
      class: 'refused',
      feature: 'image_output',
      names: ['modalities'],
      reason: 'charged by another price than text',
      asks: asksFor('image'),
    },
    {
      class: 'refused',
      feature: 'web_search',
      names: ['web_search_options'],
      reason: 'charged by search',
    },
    {
      class: 'known',
      reason: 'documented',
      names: [
        'model',
        'messages',
        'max_completion_tokens',
        'max_tokens',
        'temperature',
        'top_p',
        'stop',
        'stream',
        'stream_options',
        'n',
        'tools',
        'tool_choice',
        'parallel_tool_calls',
        'functions',
        'function_call',
        'response_format',
        'reasoning_effort',
        'verbosity',
        'logprobs',
        'top_logprobs',
        'logit_bias',
        'modalities',
        'audio',
        'moderation',
        'metadata',
        'store',
        'user',
        'safety_identifier',
        'prompt_cache_key',
        'prompt_cache_options',
        'prompt_cache_retention',
        'flagged_categories',
      ],
    },
    {
      class: 'known',
      reason: 'reasoning settings of open servers and aggregators',
      names: ['reasoning', 'thinking', 'usage'],
    },
    ...serverFields,
  ],
  hasCacheTtl: true,
}
