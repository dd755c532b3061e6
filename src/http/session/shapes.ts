/** What `/api/session` answers. */
import Type from 'typebox'
import { BOOLEAN, oneOf, orNull, type Shape, TEXT, TEXT_OR_NULL } from '../../api/shapes.ts'
import { ROLES } from '../../core/roles.ts'

const DEMO = Type.Object({ healingSignature: TEXT, stormSignature: TEXT })

export const SESSION = Type.Object({
  signedIn: BOOLEAN,
  needsToken: BOOLEAN,
  name: TEXT_OR_NULL,
  role: orNull(oneOf(ROLES)),
  reach: orNull(TEXT, {
    description:
      '`all`, `all-but-NAME` while letters of a source need a token of its own, `NAME` for such a token',
  }),
  version: TEXT,
  environment: Type.Object({ name: TEXT, colour: TEXT }),
  /** Of sources that not every server has. */
  sources: Type.Unsafe<Readonly<Record<string, boolean>>>({ type: 'object' }),
  navigation: Type.Array(Type.Object({ name: TEXT, title: TEXT, present: BOOLEAN }), {
    description: 'All sources of letters, and whether this server has some of each',
  }),
  demo: Type.Unsafe<Shape<typeof DEMO> | null>({ anyOf: [DEMO, { type: 'null' }] }),
})
export type Session = Shape<typeof SESSION>
