import type { Json } from '#inference/answer.ts'
import type { Tool, ToolChoice } from '#inference/turn.ts'

import { needText, unreadable } from './read-input-parts.ts'
import { asBoolean, asList, asObject, asText } from './untyped.ts'

/** Functions only: tools that a provider runs itself mean nothing to another format. */
export function readTools(tools: unknown): Tool[] {
  return (asList(tools) ?? []).flatMap((item, index) => {
    const tool = asObject(item)
    return tool?.['type'] === 'function' ? [readTool(tool, `body.tools[${index}]`)] : []
  })
}

const readTool = (tool: Json, param: string): Tool => ({
  name: needText(tool, 'name', param),
  description: asText(tool['description']) ?? null,
  parameters: asObject(tool['parameters']) ?? { type: 'object', properties: {} },
  isStrict: asBoolean(tool['strict']) ?? null,
})

/** Null where the caller did not say, or chose a tool that only its provider has. */
export function readToolChoice(choice: unknown): ToolChoice | null {
  const mode = asText(choice)
  if (mode !== undefined) {
    if (mode === 'auto' || mode === 'required' || mode === 'none') return { type: mode }
    throw unreadable('body.tool_choice', 'must be auto, required, none or an object')
  }
  const chosen = asObject(choice)
  if (chosen?.['type'] === 'function') {
    return { type: 'tool', name: needText(chosen, 'name', 'body.tool_choice') }
  }
  // The list of allowed tools has no place in a turn, whether one must be called has.
  return chosen?.['type'] === 'allowed_tools'
    ? { type: chosen['mode'] === 'required' ? 'required' : 'auto' }
    : null
}
