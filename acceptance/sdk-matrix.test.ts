import {
  type CallerId,
  callers,
  featureIds,
  type FeatureId,
  featuresOfPrevious,
  type FormatId,
  formats,
  modes,
  notes,
  type Place,
} from '@gatehouse/tools/compatibility'
import { createTenants, type Tenant } from '@gatehouse/tools/start-stack'
import { beforeAll, describe, expect, test } from 'vitest'

import {
  type Cell,
  type CellEnvironment,
  matrixModels,
  openCell,
  type Release,
} from './support/sdk/cell.ts'
import { contentFeatures } from './support/sdk/content-features.ts'
import { errorFeatures } from './support/sdk/error-features.ts'
import { continueResponse, continueStoredItems, continueThread } from './support/sdk/state.ts'
import { thinkingFeatures } from './support/sdk/thinking-features.ts'
import { toolFeatures } from './support/sdk/tool-features.ts'
import { useStack } from './support/use-stack.ts'

// Tests every cell of docs/compatibility.md with the published clients.

const expectations: Record<FeatureId, (cell: Cell) => Promise<void>> = {
  ...contentFeatures,
  ...toolFeatures,
  ...thinkingFeatures,
  ...errorFeatures,
}

const places: Place[] = (Object.keys(callers) as CallerId[]).flatMap((caller) =>
  (Object.keys(formats) as FormatId[]).flatMap((format) =>
    modes.map((mode) => ({ caller, format, mode })),
  ),
)

const stack = useStack({ models: matrixModels(places) })
const tenants: Partial<Record<Release, Tenant[]>> = {}
beforeAll(async () => {
  const made = await createTenants(stack().service, places.length * 2)
  tenants.newest = made.slice(0, places.length)
  tenants.previous = made.slice(places.length)
})

/** Each cell has its own key: together they exceed the limits of one key. */
function environmentOf(
  { caller, format, mode }: Place,
  release: Release = 'newest',
): CellEnvironment {
  const { base_url: baseUrl, upstream_url: upstreamUrl } = stack().description
  const index = places.findIndex(
    (place) => place.caller === caller && place.format === format && place.mode === mode,
  )
  return { baseUrl, upstreamUrl, key: tenants[release]![index]!.project_key, release }
}

/** Adds the note of the cell to the message of a failure. */
async function expectFeature(feature: FeatureId, cell: Cell) {
  await expectations[feature](cell).catch((error: unknown) => {
    if (!cell.note || !(error instanceof Error)) throw error
    throw new Error(`Note: ${notes[cell.note]}\n${error.message}`, { cause: error })
  })
}

test('every feature in the table has a test, and every test has a row', () => {
  expect(new Set(Object.keys(expectations))).toEqual(new Set(featureIds))
})

describe('conversations stored by the provider are refused', () => {
  const connect = (format: FormatId) => {
    const place = { caller: 'anthropic', format, mode: 'plain' } as const
    return openCell('conversation', place, environmentOf(place)).connection
  }

  test.each(Object.keys(formats) as FormatId[])('threads, upstream of %s', async (format) => {
    const refused = continueThread(connect(format), false)
    await expect(refused).rejects.toThrow(/400 .*'body.thread' is not supported/)
    expect(await continueThread(connect(format), true)).toBe(4)
  })

  test.each(Object.keys(formats) as FormatId[])('responses, upstream of %s', async (format) => {
    const refused = continueResponse(connect(format))
    await expect(refused).rejects.toThrow(/400 .*'body.previous_response_id' is not supported/)
  })

  test.each(Object.keys(formats) as FormatId[])('stored items, upstream of %s', async (format) => {
    await expect(continueStoredItems(connect(format))).rejects.toMatchObject({
      statusCode: 400,
      responseBody: expect.stringContaining('store: false'),
    })
  })
})

describe.each(places)('the previous major of $caller, upstream of $format, $mode', (place) => {
  test.concurrent.each(featuresOfPrevious)('%s', async (feature) => {
    await expectFeature(feature, openCell(feature, place, environmentOf(place, 'previous')))
  })
})

describe.each(places)('$caller, upstream of $format, $mode', (place) => {
  test.concurrent.each(featureIds)('%s', async (feature) => {
    await expectFeature(feature, openCell(feature, place, environmentOf(place)))
  })
})
