import type { Json } from '#formats/answer.ts'
import { isObject } from '#formats/json-values.ts'

/** Where cache markers can be: on the request, and on the blocks and tools in these members, however deep. */
const owners = ['system', 'tools', 'messages'] as const

/** Five minutes are the default, so that this `ttl` changes no price. */
const defaultTtl = '5m'

/**
 * Removes the `ttl` of every cache marker, but never the marker. What has none is not copied: requests are large
 * and mostly have no more than four markers.
 */
export function withoutCacheTtl(request: Json, onRemoved: () => void): Json {
  const changed = owners
    .filter((name) => request[name] !== undefined)
    .map((name) => [name, clean(request[name], onRemoved)] as const)
  return cleanMarker({ ...request, ...Object.fromEntries(changed) }, onRemoved)
}

function clean(value: unknown, onRemoved: () => void): unknown {
  if (Array.isArray(value)) {
    const cleaned = value.map((item) => clean(item, onRemoved))
    return cleaned.some((item, index) => item !== value[index]) ? cleaned : value
  }
  if (!isObject(value)) return value
  let cleaned = value
  for (const name of ['content', 'source']) {
    const inner = clean(value[name], onRemoved)
    if (inner !== value[name]) cleaned = { ...cleaned, [name]: inner }
  }
  return cleanMarker(cleaned, onRemoved)
}

/** `caching` is the marker of a tool that has a prompt of its own. */
function cleanMarker(owner: Json, onRemoved: () => void): Json {
  let cleaned = owner
  for (const name of ['cache_control', 'caching']) {
    const marker = owner[name]
    if (!isObject(marker) || marker['ttl'] === undefined || marker['ttl'] === defaultTtl) continue
    const { ttl: _, ...others } = marker
    cleaned = { ...cleaned, [name]: others }
    onRemoved()
  }
  return cleaned
}
