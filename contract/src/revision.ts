import { z } from 'zod'

/** The largest revision and version number: that of a 32-bit integer. */
export const revisionMax = 2_147_483_647

export const Revision = z.int().min(1).max(revisionMax).describe('The revision you last read.')
export const VersionNumber = z.int().min(1).max(revisionMax)
