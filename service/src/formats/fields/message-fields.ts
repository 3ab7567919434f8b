import type { FieldTable } from './field-table.ts'
import { serverFields } from './server-fields.ts'

/** Anthropic's Messages. */
export const messageFields: FieldTable = {
  fields: [
    {
      class: 'known',
      reason: 'documented',
      names: [
        'model',
        'messages',
        'max_tokens',
        'system',
        'temperature',
        'top_p',
        'stop_sequences',
        'stream',
        'metadata',
        'thinking',
        'tools',
        'tool_choice',
        'output_config',
        'output_format',
        'context_management',
        'compaction',
        'cache_control',
        'diagnostics',
        'flagged_categories',
      ],
    },
    {
      class: 'refused',
      feature: 'mcp',
      names: ['mcp_servers'],
      reason: 'connects to other servers',
    },
    {
      class: 'refused',
      feature: 'containers',
      names: ['container'],
      reason: 'charged by hour, and may belong to another caller',
    },
    ...serverFields,
  ],
  hasCacheTtl: true,
}
