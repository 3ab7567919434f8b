import { z } from 'zod'

/** A name that a caller chooses. Other characters than these cannot be told apart in every log and proxy. */
const Label = z.string().regex(/^[\x20-\x7e]{1,200}$/, {
  error: 'must be 1 to 200 printable ASCII characters',
})

/** The headers of inference that a configuration of the policy gateway reads. No model provider gets them. */
export const PolicyHeaders = z.object({
  'X-Policy-User': Label.optional().describe(
    'For whom the call is made: counted in user quotas, and drawn in a rollout. Default: the `sub` of the token, or the id of the key.',
  ),
  'X-Policy-Target': Label.optional().describe(
    'A label that the targets of a rollout can name, besides the endpoint.',
  ),
  'X-Policy-Project': Label.optional().describe(
    'The project of the call. It must be that of the key, or of the token if it names one.',
  ),
})
