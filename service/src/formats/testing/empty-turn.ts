import type { Turn } from '#formats/turn.ts'

/** A turn in which a caller has set nothing. */
export const emptyTurn: Turn = {
  system: [],
  messages: [],
  tools: [],
  toolChoice: null,
  canCallToolsInParallel: null,
  maxOutputTokens: null,
  temperature: null,
  topP: null,
  topK: null,
  presencePenalty: null,
  frequencyPenalty: null,
  seed: null,
  stopSequences: [],
  reasoning: null,
  outputFormat: null,
  user: null,
}
