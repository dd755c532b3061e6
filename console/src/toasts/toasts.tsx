/**
 * Short messages in the corner, some with an Undo that is offered for ten seconds, and the announcer: a region that screen readers
 * read aloud. Messages of failures stay until they are dismissed.
 */
import { Button, Group, Notification, Stack, Text } from '@mantine/core'
import { createContext, type ReactNode, useCallback, useContext, useMemo, useRef, useState } from 'react'

export interface Toast {
  readonly title: string
  readonly message?: string
  readonly tone?: 'done' | 'failed'
  /** Offered for ten seconds. */
  readonly undo?: () => void
}

interface Toasts {
  show(toast: Toast): void
  /** Says something to screen readers without showing it. */
  announce(text: string): void
}

const ToastContext = createContext<Toasts | null>(null)

const UNDO_MS = 10_000
const PLAIN_MS = 6_000

export function useToasts(): Toasts {
  const toasts = useContext(ToastContext)
  if (toasts === null) throw new Error('there is no ToastProvider above')
  return toasts
}

/** Gives `useToasts` to everything below it, and shows them. */
export function ToastProvider({ children }: { readonly children: ReactNode }) {
  const [shown, setShown] = useState<readonly (Toast & { readonly id: number })[]>([])
  const [announced, setAnnounced] = useState('')
  const next = useRef(1)

  const close = useCallback((id: number) => setShown((all) => all.filter((each) => each.id !== id)), [])
  const show = useCallback(
    (toast: Toast) => {
      const id = next.current++
      setShown((all) => [...all.slice(-3), { ...toast, id }])
      if (toast.tone !== 'failed') setTimeout(() => close(id), toast.undo === undefined ? PLAIN_MS : UNDO_MS)
    },
    [close],
  )
  const toasts = useMemo(() => ({ show, announce: setAnnounced }), [show])

  return (
    <ToastContext value={toasts}>
      {children}
      <div className="announcer" aria-live="polite" role="status">
        {announced}
      </div>
      <Stack className="toasts" gap="xs" role="region" aria-label="Messages">
        {shown.map(({ id, title, message, tone = 'done', undo }) => (
          <Notification
            key={id}
            role={tone === 'failed' ? 'alert' : 'status'}
            color={tone === 'failed' ? 'red' : 'teal'}
            title={title}
            withBorder
            onClose={() => close(id)}
            closeButtonProps={{ 'aria-label': 'Dismiss' }}
          >
            <Group justify="space-between" wrap="nowrap">
              <Text size="sm" c="var(--quiet)">
                {message}
              </Text>
              {undo !== undefined && (
                <Button
                  size="compact-sm"
                  variant="light"
                  onClick={() => {
                    close(id)
                    undo()
                  }}
                >
                  Undo
                </Button>
              )}
            </Group>
          </Notification>
        ))}
      </Stack>
    </ToastContext>
  )
}
