import type { StopReason } from '#formats/answer.ts'

const reasons = new Map<unknown, StopReason>([
  ['end_turn', 'end'],
  ['max_tokens', 'max_tokens'],
  ['model_context_window_exceeded', 'max_tokens'],
  ['stop_sequence', 'stop_sequence'],
  ['tool_use', 'tool_call'],
  ['refusal', 'refusal'],
  ['pause_turn', 'pause'],
])

/** An unknown reason is read as `end`. */
export const readStopReason = (reason: unknown): StopReason => reasons.get(reason) ?? 'end'

const names = {
  end: 'end_turn',
  max_tokens: 'max_tokens',
  stop_sequence: 'stop_sequence',
  tool_call: 'tool_use',
  refusal: 'refusal',
  content_filter: 'refusal',
  pause: 'pause_turn',
} as const satisfies Record<StopReason, string>

export const writeStopReason = (reason: StopReason): string => names[reason]
