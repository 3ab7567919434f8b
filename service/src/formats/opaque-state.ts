import type { OpaqueState } from './turn.ts'

/**
 * Opaque state of one format inside another. Where the caller speaks the format of its origin, it is written
 * unchanged. Otherwise it is packed into a text that names the origin, so that a caller who cannot read it can
 * send it back.
 */
const prefix = 'gatehouse.1.'

export function packOpaqueState(opaque: OpaqueState): string {
  const { origin, kind, data, id } = opaque
  return prefix + Buffer.from(JSON.stringify([origin, kind, data, id])).toString('base64url')
}

/** Undefined: the text was not packed here, so it belongs to the caller's own format. */
export function unpackOpaqueState(text: string): OpaqueState | undefined {
  if (!text.startsWith(prefix)) return undefined
  try {
    const packed: unknown = JSON.parse(
      Buffer.from(text.slice(prefix.length), 'base64url').toString(),
    )
    if (!Array.isArray(packed)) return undefined
    const [origin, kind, data, id] = packed as [string, OpaqueState['kind'], string, string | null]
    const isGood =
      typeof origin === 'string' && typeof kind === 'string' && typeof data === 'string'
    return isGood ? { origin, kind, data, id: typeof id === 'string' ? id : null } : undefined
  } catch {
    return undefined
  }
}
