import type { Opaque, ProtocolName } from './turn.ts'

/**
 * Opaque state of one format inside another. Where caller and origin speak the same format it is written
 * as it came. Elsewhere it is packed into a text that says where it belongs, so that it can come back
 * through a caller who does not know what it is.
 */
const mark = 'gatehouse.1.'

export function packOpaque(opaque: Opaque): string {
  const { origin, kind, data, id } = opaque
  return mark + Buffer.from(JSON.stringify([origin, kind, data, id])).toString('base64url')
}

/** Undefined: the text was not packed by us, so it is the caller's own format's. */
export function unpackOpaque(text: string): Opaque | undefined {
  if (!text.startsWith(mark)) return undefined
  try {
    const packed: unknown = JSON.parse(Buffer.from(text.slice(mark.length), 'base64url').toString())
    if (!Array.isArray(packed)) return undefined
    const [origin, kind, data, id] = packed as [ProtocolName, Opaque['kind'], string, string | null]
    const isGood =
      typeof origin === 'string' && typeof kind === 'string' && typeof data === 'string'
    return isGood ? { origin, kind, data, id: typeof id === 'string' ? id : null } : undefined
  } catch {
    return undefined
  }
}
