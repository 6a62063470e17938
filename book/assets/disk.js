/* Where a page can be besides a web server: on a disk, and on paper. */

/* Opened from disk it may not fetch its neighbours, so the search shows titles there without excerpts. */
if (location.protocol === "file:") {
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
}

/* Paper is white whatever the screen is, and shows figures that nobody has scrolled to. */
(() => {
  const root = document.documentElement.dataset;
  let worn;
  addEventListener("beforeprint", () => {
    document.querySelectorAll("img[loading=lazy]").forEach((image) => (image.loading = "eager"));
    worn = root.theme;
    root.theme = "light";
  });
  addEventListener("afterprint", () => {
    root.theme = worn;
  });
})();
