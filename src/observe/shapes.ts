/** What `/api/settings` answers. */
import Type from 'typebox'
import { BOOLEAN, INTEGER, oneOf, orNull, type Shape, TEXT, TIME } from '../api/shapes.ts'
import { ROLES } from '../core/roles.ts'

export const SETTINGS = Type.Object({
  version: TEXT,
  node: TEXT,
  startedAtUtc: TIME,
  store: Type.Object({ kind: oneOf(['sqlite', 'postgres']), place: TEXT }),
  retentionDays: INTEGER,
  environment: Type.Object({ name: TEXT, colour: TEXT }),
  tokens: orNull(Type.Array(Type.Object({ name: TEXT, role: oneOf(ROLES) })), {
    description: 'Whose tokens there are; null unless an admin asks',
  }),
  tokensConfigured: BOOLEAN,
})
export type Settings = Shape<typeof SETTINGS>
