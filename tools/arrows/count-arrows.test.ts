import { expect, test } from 'vitest'

import { countArrows } from './count-arrows.ts'

test.each(['credits', 'limits', 'inference', 'formats'])(
  'the imports inside %s have no cycle',
  async (folder) => {
    const { arrows, upward } = await countArrows(folder)
    expect(arrows).toBeGreaterThan(5)
    expect(upward).toBe(0)
  },
)
