/** Edit and retry: the original, what it becomes, what differs, and what the server would make of it. */
import { Anchor, Button, Checkbox, Group, Stack, Text, Textarea } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { useEffect, useMemo, useRef, useState } from 'react'
import { bytesOf, toBase64 } from '../../../src/client/bytes.ts'
import { indentJson } from '../../../src/core/json/tokens.ts'
import { errorLine } from '../acts/error-line.ts'
import { useLetterActs } from '../acts/use-letter-acts.ts'
import { letterQuery } from '../api/queries.ts'
import type { LetterDetail } from '../api/types.ts'
import { ActButton } from '../kit/act-button.tsx'
import { Page, Panel, Shown } from '../kit/page.tsx'
import { DiffView } from './diff-view.tsx'
import { type Draft, dropDraft, keepDraft, keptDraft } from './draft.ts'
import { EditDryRun } from './edit-dry-run.tsx'
import { editModeOf, editProblem, fromField, toField } from './edit-text.ts'
import { LeaveDialog } from './leave-dialog.tsx'
import './letter.css'
import { NoLetter } from './no-letter.tsx'
import { PayloadView } from './payload-view.tsx'
import { retryRefusal } from './refusals.ts'

const route = getRouteApi('/letters/$engine/$rowKey/edit')

export function EditScreen() {
  const key = route.useParams()
  const read = useQuery(letterQuery(key))
  return (
    <Page
      title={`Edit and retry ${key.engine} ${read.data?.instanceId ?? key.rowKey}`}
      lead={read.data === undefined ? '' : errorLine(read.data)}
      beside={
        <Anchor renderRoot={(props) => <Link to="/letters/$engine/$rowKey" params={key} {...props} />}>
          Back to the letter
        </Anchor>
      }
    >
      <Shown read={read} what="the letter" unknown={<NoLetter letter={key} />}>
        {(letter) => <Editor key={`${letter.engine}/${letter.rowKey}`} letter={letter} />}
      </Shown>
    </Page>
  )
}

/** The payload that a retry would send as things are, in a form that can be edited. */
function useStart({
  editedMessage,
  editedMessageEncoding,
  originalMessage,
  originalMessageEncoding,
}: LetterDetail) {
  const text = editedMessage ?? originalMessage
  const encoding = editedMessage === null ? originalMessageEncoding : (editedMessageEncoding ?? 'utf8')
  return useMemo(() => {
    const mode = editModeOf(text, encoding)
    return { text, encoding, mode, field: toField(text, () => toBase64(bytesOf(text, encoding)), mode) }
  }, [text, encoding])
}

function Editor({ letter }: { readonly letter: LetterDetail }) {
  const { mode, field, text, encoding } = useStart(letter)
  const [kept] = useState(() => keptDraft(letter))
  const [typed, setTyped] = useState(kept?.typed ?? field)
  const [notes, setNotes] = useState(kept?.notes ?? '')
  const [isAnyText, setAnyText] = useState(false)
  const isSent = useRef(false)
  const isDirty = typed !== field
  useDraft(letter, isDirty ? { typed, notes, version: kept?.version ?? letter.version } : null, isSent)

  const checked = editProblem(typed, { mode, original: field, notes })
  const isTooLarge = !isDirty && checked?.kind === 'size'
  // Unchanged, nothing of it is sent from here.
  const problem = isDirty ? checked : null
  const isBlocked = problem !== null && !(problem.kind === 'json' && isAnyText)
  const refusal = retryRefusal(letter) ?? (isBlocked ? problem.says : null)
  const edit = useMemo(() => fromField(typed, mode), [typed, mode])
  const send = useSend(letter, isSent)
  const pretty = mode.kind === 'text' && !isTooLarge ? indentJson(typed) : null
  return (
    <>
      {kept !== null && kept.version !== letter.version && (
        <Text size="sm" fw={600} role="status">
          The letter has changed since this draft was made. Compare before you send it.
        </Text>
      )}
      <div className="edit">
        <Stack gap="md">
          <Panel title={letter.editedMessage === null ? 'Original' : 'As it was edited before'}>
            <PayloadView text={text} encoding={encoding} label="The payload as it is" />
          </Panel>
          <Panel title="What differs">
            <DiffView before={field} after={typed} />
          </Panel>
        </Stack>
        <Stack gap="md">
          <Panel
            title="Edited"
            beside={
              <Group gap="xs">
                {pretty !== null && pretty !== typed && (
                  <Button size="compact-sm" variant="default" onClick={() => setTyped(pretty)}>
                    Indent
                  </Button>
                )}
                {isDirty && (
                  <Button size="compact-sm" variant="default" onClick={() => setTyped(field)}>
                    Start over
                  </Button>
                )}
              </Group>
            }
          >
            {mode.kind === 'base64' && <Text size="sm">{mode.why}</Text>}
            {isTooLarge && <Text size="sm">It is too large to be edited here. {checked.says}</Text>}
            <Textarea
              aria-label="Payload to send"
              classNames={{ input: 'editor' }}
              rows={18}
              spellCheck={false}
              readOnly={isTooLarge}
              value={typed}
              error={problem?.says}
              onChange={(event) => setTyped(event.currentTarget.value)}
              onKeyDown={(event) => {
                if (event.key === 'Escape') event.currentTarget.blur()
              }}
            />
            {problem?.kind === 'json' && (
              <Checkbox
                size="sm"
                label="Send although it is not JSON"
                checked={isAnyText}
                onChange={(event) => setAnyText(event.currentTarget.checked)}
              />
            )}
          </Panel>
          <Panel title="Send">
            <Stack gap="md">
              <EditDryRun letter={letter} edit={edit} refusal={refusal} />
              <Textarea
                label="Notes"
                description="Optional; why, for those who come after you."
                autosize
                minRows={1}
                maxLength={4_000}
                value={notes}
                onChange={(event) => setNotes(event.currentTarget.value)}
              />
              <Group>
                <ActButton
                  needs="operator"
                  refusal={refusal}
                  onClick={() => send(isDirty ? { edit, notes } : { notes })}
                >
                  {isDirty ? 'Send the edited payload' : 'Send it unchanged'}
                </ActButton>
              </Group>
            </Stack>
          </Panel>
        </Stack>
      </div>
      <LeaveDialog isDirty={isDirty} isSent={() => isSent.current} drop={() => dropDraft(letter)} />
    </>
  )
}

/** Keeps the draft as it is typed; one that is no different from the payload is none. */
function useDraft(letter: LetterDetail, draft: Draft | null, isSent: { readonly current: boolean }): void {
  const { engine, rowKey } = letter
  const { typed, notes, version } = draft ?? { typed: null, notes: '', version: 0 }
  useEffect(() => {
    if (isSent.current) return
    if (typed === null) dropDraft({ engine, rowKey })
    else keepDraft({ engine, rowKey }, { typed, notes, version })
  }, [engine, rowKey, typed, notes, version, isSent])
}

/** Sends it and leads back to the letter, which then says what becomes of it. */
function useSend(letter: LetterDetail, isSent: { current: boolean }) {
  const acts = useLetterActs()
  const navigate = useNavigate()
  return async (request: Parameters<typeof acts.retry>[1]) => {
    if (!(await acts.retry(letter, request))) return
    isSent.current = true
    dropDraft(letter)
    const { engine, rowKey } = letter
    await navigate({ to: '/letters/$engine/$rowKey', params: { engine, rowKey }, replace: true })
  }
}
