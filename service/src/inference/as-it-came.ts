import type { OutFrame, SourceFrame } from './answer.ts'

/** An upstream's frame for the caller, byte for byte. */
export const asItCame = ({ event, json, bytes }: SourceFrame): OutFrame => ({
  event: event === '' ? null : event,
  data: json,
  bytes,
})
