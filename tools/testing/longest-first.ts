import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** By the time they take, which a clean clone cannot know. Started last, one of them would run alone at the end. */
const longest = [
  'random-inputs',
  'policy-model',
  'credits-killed',
  'audit-delivery-killed',
  'quotas-killed',
  'limits-killed',
  'publish-killed',
  'rollback',
  'processes',
  'stream-patience',
  'stream-soak',
  'scored-verdict.scenario',
  'any-pieces.scenario',
  'same-verdict.scenario',
]

/** Otherwise the order of vitest: failed files first, then by duration, then by size. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const isLong = ({ moduleId }: TestSpecification) =>
      longest.some((name) => moduleId.endsWith(`/${name}.test.ts`))
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))]
  }
}
