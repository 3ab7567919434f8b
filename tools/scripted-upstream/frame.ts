import type { Json } from './json.ts'

/** A piece carries content; the end frame tells the client that the answer is complete. */
export type Frame = { text: string; kind: 'piece' | 'frame' | 'end' }

export type Failure = {
  status: number
  type?: string
  code?: string
  message: string
  requestId: string
}

export function namedFrame(type: string, data: Json, kind: Frame['kind'] = 'frame'): Frame {
  return { text: `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`, kind }
}

export function dataFrame(data: Json, kind: Frame['kind'] = 'frame'): Frame {
  return { text: `data: ${JSON.stringify(data)}\n\n`, kind }
}
