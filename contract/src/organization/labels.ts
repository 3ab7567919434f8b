import { z } from 'zod'

const labelsMax = 20

/** No comma, colon or equals sign: requests name labels in lists and as `name=value`. */
export const labelName = String.raw`[A-Za-z0-9][A-Za-z0-9._/-]{0,62}`
export const labelValue = String.raw`[A-Za-z0-9]([A-Za-z0-9 ._/:@+-]{0,61}[A-Za-z0-9])?`

const Labels = z
  .record(
    z.string().regex(new RegExp(`^${labelName}$`), {
      error:
        'must have names of 1 to 63 letters, digits and ._/-, which begin with a letter or digit',
    }),
    z.string().regex(new RegExp(`^${labelValue}$`), {
      error:
        'must be 1 to 63 letters, digits, spaces and ._/:@+-, with a letter or digit at both ends',
    }),
  )
  .refine((labels) => Object.keys(labels).length <= labelsMax, {
    error: `must have at most ${labelsMax} labels`,
  })

/** As they are shown. */
export const OwnLabels = z
  .record(z.string(), z.string())
  .describe('For reports of costs, such as {"cost_center": "4711"}.')

export const GivenLabels = Labels.nullish().describe('Up to 20. Absent or null: none.')

export const LabelsEdit = Labels.nullish().describe(
  'Up to 20, which replace all that were there; {} removes them. Absent or null keeps them.',
)
