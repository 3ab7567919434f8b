import { BoundedMap } from '#platform/bounded-map.ts'

import type { Labels } from './labels.ts'

const partsMax = 1000
const idsMax = 10_000

/** What many credentials have in common: the models that they may use, and the labels of their project. */
type Parts = { allowed_models: string[] | null; project_labels: Labels | null }

/** Returns what was read with a credential, with the one copy of its parts that all equal ones share. */
export type ShareParts = <Row extends Parts>(row: Row) => Row

/**
 * Thousands of cached keys have the list of models and the labels of their project. With copies of their own, these would need
 * more memory than everything else about the keys.
 */
export function createSharing(): ShareParts {
  const lists = new BoundedMap<string, string[]>(partsMax)
  const labels = new BoundedMap<string, Labels>(partsMax)
  const ids = new BoundedMap<string, string>(idsMax)
  const shareId = (id: string) => share(ids, id, () => id)
  return (row) => {
    const { allowed_models: models, project_labels: given } = row
    return {
      ...row,
      allowed_models: models && share(lists, models.join('\n'), () => models.map(shareId)),
      project_labels: given && share(labels, JSON.stringify(given), () => given),
    }
  }
}

/** The known value, which becomes the newest, or else a new one. */
function share<Value>(known: BoundedMap<string, Value>, text: string, create: () => Value): Value {
  const value = known.get(text) ?? create()
  known.set(text, value)
  return value
}
