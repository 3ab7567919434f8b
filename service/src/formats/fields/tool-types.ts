import { asText, objectOf } from '#formats/json-values.ts'

import { findRowByStart, type Row } from './field-table.ts'

/** A shell of the provider, unless the caller runs it. */
const isHostedShell = (tool: unknown) => {
  const { environment } = objectOf(tool)
  return environment !== undefined && objectOf(environment)['type'] !== 'local'
}

/** In every format, by the start of their names: vendors add a date. Those that the provider runs cost extra. */
export const toolTypes: readonly Row[] = [
  {
    class: 'refused',
    feature: 'web_search',
    names: ['web_search', 'x_search', 'browser_search', 'builtin_function'],
    reason: 'charged by search',
  },
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
  {
    class: 'refused',
    feature: 'file_search',
    names: ['file_search', 'collections_search', 'retrieval'],
    reason: 'charged by call',
  },
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
  {
    class: 'known',
    names: [
      'function',
      'custom',
      'namespace',
      'tool_search',
      'tool_search_tool',
      'local_shell',
      'apply_patch',
      'bash',
      'text_editor',
      'memory',
    ],
    reason: 'the caller runs it, or it costs nothing',
  },
]

/** A tool without a type is the caller's own. */
export const toolTypeOf = (tool: unknown): string => asText(objectOf(tool)['type']) ?? 'custom'

export const findToolRow = (type: string): Row | undefined => findRowByStart(toolTypes, type)
