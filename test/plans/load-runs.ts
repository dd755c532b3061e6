import type { Instant } from '../../src/core/clock.ts'

/** SQL that fills the table of runs with so many, nearly all of them ended. */
export const runScript = (runs: number, now: Instant): string => `
    INSERT INTO bartleby.runs (id, kind, name, about, subject, place, actor, state, started_at, ended_at, expected, done, owner, owned_until)
      SELECT 'r' || lpad(n::text, 19, '0'), 'webhook-requeue', 'name-' || n, 'c/k', '{}', '{}', 'actor',
        CASE WHEN n > 5 THEN 'done' ELSE 'running' END, ${now} + n, CASE WHEN n > 5 THEN ${now} + n END, 10, 10, 'owner', ${now} - 1
      FROM generate_series(1, ${runs}) AS n;`
